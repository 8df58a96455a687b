"""Tries what a server must not be able to do, and prints what came of each attempt as JSON.

    attempts.py MACHINE.json [PROMISE]     # what there is on this machine to attack

`done`, the error's name, or how it ended. It runs in an instance, and in a plain unit of root's to
show that it can be done at all. Standard library only, and no module of ours: it is copied.
"""

import ctypes
import errno
import json
import mmap
import os
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
WITHIN = 1.0  # seconds for an answer over the lab's bridge
CHILD_WITHIN = 20  # seconds for what a child tries
UNEXPECTED = 255  # no error's number
QUERY = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06secret\x05exfil\x04test\x00\x00\x01\x00\x01"
# <linux/sched.h>, unshare(2)
NAMESPACES = {"user": 1 << 28, "mount": 1 << 17, "pid": 1 << 29, "network": 1 << 30}
NAMESPACES |= {"IPC": 1 << 27, "host name": 1 << 26, "cgroup": 1 << 25}
ADDR_NO_RANDOMIZE = 0x0040000  # personality(2)
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
# The numbers of system calls without a wrapper, equal on all newer architectures.
IO_URING_SETUP, IO_URING_ENTER = 425, 426
# And on amd64, which the virtual machine is.
FINIT_MODULE, DELETE_MODULE, BPF = 313, 176, 321
BYTES = 200 << 20


def call(result):
    """Of a function of libc: the result, or its error."""
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def in_child(attempt):
    """Have a child try it, whose end ends all that it changed of itself."""
    if child := os.fork():
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            raise ChildProcessError(signal.Signals(-code).name)
        if code:
            raise OSError(code, os.strerror(code))
        return
    signal.alarm(CHILD_WITHIN)
    code = UNEXPECTED
    try:
        attempt()
        code = 0
    except OSError as error:
        code = error.errno or errno.ETIMEDOUT
    finally:
        os._exit(code)


def write(path):
    Path(path).write_text("x", encoding="utf-8")
    Path(path).unlink()


def execute(folder):
    program = Path(folder, "attempt.sh")
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    try:
        subprocess.run([program], check=True)
    finally:
        program.unlink()


def execute_memory():
    made = os.memfd_create("attempt", 0)
    os.write(made, Path("/bin/true").read_bytes())
    subprocess.run([f"/proc/self/fd/{made}"], check=True, pass_fds=[made])


def make(family):
    socket.socket(family, socket.SOCK_DGRAM).close()


def connect(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.connect(path)


def ring_socket():
    """A socket that the kernel makes for io_uring: IORING_OP_SOCKET is its operation 45."""
    parameters = ctypes.create_string_buffer(120)
    ring = call(LIBC.syscall(IO_URING_SETUP, 4, parameters))
    fields = struct.unpack_from("10I", parameters.raw)
    entries, done = fields[0], fields[1]
    # struct io_sqring_offsets at byte 40, struct io_cqring_offsets at byte 80 of the parameters.
    head_tail = struct.unpack_from("10I", parameters.raw, 40)
    finished = struct.unpack_from("10I", parameters.raw, 80)
    size = max(head_tail[6] + entries * 4, finished[5] + done * 16)
    rings = mmap.mmap(ring, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, offset=0)
    asked = mmap.mmap(ring, entries * 64, flags=mmap.MAP_SHARED, offset=0x10000000)
    kind = socket.SOCK_STREAM
    struct.pack_into("BBHiQQII", asked, 0, 45, 0, 0, socket.AF_UNIX, kind, 0, 0, 0)
    struct.pack_into("I", rings, head_tail[6], 0)
    struct.pack_into("I", rings, head_tail[1], 1)
    call(LIBC.syscall(IO_URING_ENTER, ring, 1, 1, 1, None, 0))
    (result,) = struct.unpack_from("i", rings, finished[5] + 8)
    if result < 0:
        raise OSError(-result, os.strerror(-result))


def ask(address, port):
    """Send a query by UDP and wait for its answer."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as made:
        made.settimeout(WITHIN)
        made.sendto(QUERY, socket.getaddrinfo(address, port, family)[0][4])
        assert made.recv(512) == QUERY


def reach(address, port):
    """Connect by TCP."""
    socket.create_connection((address, port), timeout=WITHIN).close()


def own_loopback():
    """Talk to itself over the loopback interface."""
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.create_server((address, 0), family=family) as server:
            reach(address, server.getsockname()[1])


def interfaces():
    """What os.networkInterfaces() of node asks: getifaddrs(3)."""
    found = ctypes.c_void_p()
    call(LIBC.getifaddrs(ctypes.byref(found)))
    LIBC.freeifaddrs(found)


def become(uid):
    os.setresuid(uid, 0, 0)
    os.setresuid(0, 0, 0)


def trace(pid):
    call(LIBC.ptrace(PTRACE_ATTACH, pid, None, None))
    os.waitpid(pid, 0)
    call(LIBC.ptrace(PTRACE_DETACH, pid, None, None))


def mount():
    call(LIBC.mount(b"tmpfs", b"/mnt", b"tmpfs", 0, None))
    call(LIBC.umount2(b"/mnt", 2))


def special_file(home):
    os.mknod(f"{home}/attempt-device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    Path(home, "attempt-device").unlink()


def set_user_id(home):
    path = Path(home, "attempt-setuid")
    path.touch()
    try:
        path.chmod(0o4755)
        if not path.stat().st_mode & stat.S_ISUID:
            raise PermissionError(errno.EPERM, "not set")
    finally:
        path.unlink()


def no_randomness():
    call(LIBC.personality(ADDR_NO_RANDOMIZE))


def cgroup(controller, name):
    """A file of this process' own cgroup, in whichever hierarchy has the controller."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return Path(f"/sys/fs/cgroup/{controller}{path}", name)
    return Path(f"/sys/fs/cgroup{path}", name)


def own_limit():
    """The file that limits its memory, opened for writing and not written."""
    names = ("memory.limit_in_bytes", "memory.max")
    found = [cgroup("memory", name) for name in names]
    os.close(os.open(next((path for path in found if path.exists()), found[0]), os.O_WRONLY))


def eat():
    data = mmap.mmap(-1, BYTES)
    for place in range(0, BYTES, mmap.PAGESIZE):
        data[place] = 1


def many_tasks():
    made = []
    try:
        for _ in range(200):
            if not (child := os.fork()):
                signal.pause()
            made.append(child)
    finally:
        for child in made:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def many_files():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with ExitStack() as opened:
        for _ in range(2000):
            opened.callback(os.close, os.open("/dev/null", os.O_RDONLY))


def burn():
    """A fifth of a second of one processor; the kernel counts when it has held it up."""
    began = os.times().user
    while os.times().user - began < 0.2:
        pass
    text = cgroup("cpu", "cpu.stat").read_text(encoding="utf-8")
    numbers = dict(line.split() for line in text.splitlines())
    if int(numbers.get("nr_throttled", 0)):
        raise InterruptedError(errno.EAGAIN, "throttled")


def core_dumps():
    infinity = resource.RLIM_INFINITY
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (infinity, infinity))
    except ValueError as error:  # what Python makes of EPERM there
        raise PermissionError(errno.EPERM, str(error)) from None


def of_files(there, home):
    return {
        "write below /usr": lambda: write("/usr/local/attempt"),
        "write below /etc": lambda: write("/etc/attempt"),
        "write below /srv": lambda: write("/srv/attempt"),
        "read /etc/shadow": lambda: Path("/etc/shadow").read_bytes(),
        "read another's /tmp": lambda: Path("/tmp/attempt-target").read_bytes(),
        "read another's shared memory": lambda: Path("/dev/shm/attempt-target").read_bytes(),
        "read a home": lambda: Path("/home/attempt/file").read_bytes(),
        "read another's state": lambda: Path(there["state"], "file").read_bytes(),
        "write another's state": lambda: write(f"{there['state']}/new"),
        "read a credential's source": lambda: Path("/etc/credstore/attempt").read_bytes(),
        "read another's credential": lambda: Path(there["credential"]).read_bytes(),
        "read a record": lambda: list(Path("/run/mcp-bridge/ended").iterdir()),
        "read /proc/cpuinfo": lambda: Path("/proc/cpuinfo").read_bytes(),
        "list the kernel's modules": lambda: list(Path("/usr/lib/modules").iterdir()),
        "make a device": lambda: special_file(home),
        "make a set-user-ID file": lambda: set_user_id(home),
    }


def of_processes(there):
    return {
        "become another's uid": lambda: in_child(lambda: become(there["uid"])),
        "signal another": lambda: os.kill(there["pid"], 0),
        "see another": lambda: Path(f"/proc/{there['pid']}/status").read_bytes(),
        "trace another": lambda: trace(there["pid"]),
        "open another's stdin": lambda: os.close(
            os.open(f"/proc/{there['pid']}/fd/0", os.O_WRONLY | os.O_NONBLOCK)
        ),
        "read another's memory": lambda: os.close(
            os.open(f"/proc/{there['pid']}/mem", os.O_RDONLY)
        ),
        "connect to another's socket": lambda: connect(there["socket"]),
        "connect to the system bus": lambda: connect("/run/dbus/system_bus_socket"),
        "connect to an abstract socket": lambda: connect(f"\0{there['abstract']}"),
    }


def of_the_kernel():
    found = {
        f"unshare the {name} namespace": lambda flag=flag: in_child(
            lambda: call(LIBC.unshare(flag))
        )
        for name, flag in NAMESPACES.items()
    }
    # With a user namespace of its own a process has every capability in there.
    both = NAMESPACES["user"] | NAMESPACES["mount"]
    found["unshare user and mount namespaces"] = lambda: in_child(lambda: call(LIBC.unshare(both)))
    return found | {
        "mount a file system": lambda: in_child(mount),
        "change the root directory": lambda: in_child(lambda: os.chroot("/")),
        "set the host name": lambda: socket.sethostname(socket.gethostname()),
        "switch address randomization off": lambda: in_child(no_randomness),
        "make code at run time": lambda: mmap.mmap(
            -1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        ),
    }


def of_execution(home, cache):
    places = {"its own directory": home, "its cache": cache}
    places |= {path: path for path in ("/tmp", "/var/tmp", "/dev/shm")}
    found = {f"execute from {name}": lambda at=path: execute(at) for name, path in places.items()}
    return found | {"execute a memory file": execute_memory}


def of_sockets():
    families = ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET")
    found = {
        f"make an {name} socket": lambda name=name: make(getattr(socket, name)) for name in families
    }
    return found | {
        "make a socket by io_uring": lambda: in_child(ring_socket),
        "ask for the interfaces": interfaces,
        "talk to itself over loopback": own_loopback,
    }


def of_the_network(targets):
    """Each target by UDP, a query that carries a name out, and some by TCP."""
    found = {}
    for name, (address, port, by_tcp) in targets.items():
        found[f"ask {name}"] = lambda to=(address, port): ask(*to)
        if by_tcp:
            found[f"connect to {name}"] = lambda to=(address, port): reach(*to)
    return found


def of_limits():
    return {
        "use 200 MiB of memory": lambda: in_child(eat),
        "run 200 processes": many_tasks,
        "open 2,000 files": many_files,
        "leave a core dump": core_dumps,
        "lift its own limit": own_limit,
    }


def load_module(path):
    """Load a module of the kernel's and unload it again."""
    made = os.open(path, os.O_RDONLY)
    try:
        call(LIBC.syscall(FINIT_MODULE, made, b"", 0))
    finally:
        os.close(made)
    name = Path(path).name.partition(".")[0].encode()
    call(LIBC.syscall(DELETE_MODULE, name, os.O_NONBLOCK))


def set_again(path):
    """Write what stands there already."""
    made = os.open(path, os.O_RDWR)
    try:
        text = os.read(made, 4096)
        os.lseek(made, 0, os.SEEK_SET)
        os.write(made, text)
    finally:
        os.close(made)


def look_at(path):
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))


def bpf_map():
    """bpf(2): BPF_MAP_CREATE is command 0; an array of one entry of eight bytes."""
    array = struct.pack("IIIII", 2, 4, 8, 1, 0)
    return LIBC.syscall(BPF, 0, ctypes.create_string_buffer(array, 128), 128)


def real_time():
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def of_the_machine(there):
    """What a container could not do either; where there is a kernel to try it on."""
    ctrl_alt_del_off = 0  # reboot(2): LINUX_REBOOT_CMD_CAD_OFF, which ends nothing
    syslog_read_all = 3  # syslog(2)
    return {
        "load a module": lambda: load_module(there["module"]),
        "change a setting of the kernel": lambda: set_again("/proc/sys/vm/swappiness"),
        "change a setting of a disk": lambda: set_again("/sys/block/vda/queue/read_ahead_kb"),
        "read the disk itself": lambda: look_at("/dev/vda"),
        "read the machine's memory": lambda: look_at("/proc/kcore"),
        "read the kernel's log": lambda: call(
            LIBC.klogctl(syslog_read_all, ctypes.create_string_buffer(64), 64)
        ),
        "open the kernel's log": lambda: look_at("/dev/kmsg"),
        "set the clock": lambda: time.clock_settime(
            time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME)
        ),
        "schedule in real time": lambda: in_child(real_time),
        "come before others": lambda: in_child(lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)),
        "use the ports of devices": lambda: in_child(lambda: call(LIBC.ioperm(0x80, 1, 1))),
        "rule over the machine's power": lambda: call(LIBC.reboot(ctrl_alt_del_off)),
        "give the kernel a map for a program": lambda: os.close(call(bpf_map())),
    }


def attempts(there):
    """Promise to its attempts."""
    home = os.environ.get("HOME", "/root")
    cache = os.environ.get("XDG_CACHE_HOME", home)
    machine = {"machine": of_the_machine(there)} if "module" in there else {}
    return machine | {
        "files": of_files(there, home),
        "processes": of_processes(there),
        "kernel": of_the_kernel(),
        "execution": of_execution(home, cache),
        "sockets": of_sockets(),
        "network": of_the_network(there["targets"]),
        "limits": of_limits(),
        "processor": {"use a whole processor": burn},
    }


def result(attempt):
    try:
        attempt()
    except TimeoutError:
        return "ETIMEDOUT"
    except socket.gaierror:
        return "EAI_NONAME"  # it names an interface that is not there
    except ChildProcessError as error:
        return str(error)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    except subprocess.CalledProcessError as error:
        return f"status {error.returncode}"
    return "done"


def main():
    there = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    promises = attempts(there)
    found = {
        promise: {name: result(attempt) for name, attempt in promises[promise].items()}
        for promise in sys.argv[2:] or promises
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
