"""The command line that becomes a container, and the files that it finds at its first boot."""

import uuid
from pathlib import Path

from lab import cgroups, network
from lab.commands import PLAIN
from lab.places import Place
from lab.spec import Spec

ENVIRONMENT = PLAIN

# Within a mount namespace of its own: enter the cgroups, mount the overlay, become nspawn. The
# mount is in no other namespace, so nothing has to be unmounted.
_SCRIPT = """
while [ "$1" != -- ]; do echo $$ > "$1" || exit; shift; done
mount -t overlay overlay -o "$2" "$3" || exit
shift 3
exec "$@"
"""
_LAYERS = ("upper", "work", "root")


def command(place: Place, spec: Spec) -> list[str]:
    """Return the words; they are to be run with the cache as current directory."""
    folder = place.folder.relative_to(place.lab.cache)
    # Relative, since a path with a colon or a comma would not survive as a mount option.
    lower = ":".join((*spec.layers, f"bases/{spec.base}"))
    upper, work = folder / "upper", folder / "work"
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    root = folder / "root"
    return [
        # When the keeper ends, so does unshare and with it nspawn. The container's processes do
        # not end with nspawn, but they do when it is the first process of their PID namespace.
        *("setpriv", "--pdeathsig", "KILL", "--"),
        *("unshare", "--mount", "--propagation", "private"),
        *("--pid", "--fork", "--kill-child", "--mount-proc", "--"),
        *("sh", "-c", _SCRIPT, "sh", *cgroups.entrances(place.kernel_name)),
        *("--", options, str(root)),
        *_nspawn(place, spec, root),
    ]


def _nspawn(place: Place, spec: Spec, root: Path) -> list[str]:
    words = [
        *("systemd-nspawn", "--quiet", "--boot", f"--directory={root}"),
        *(f"--machine={place.kernel_name}", f"--hostname={place.name}"),
        # No systemd here that could be told; and READY=1 only when the one inside is ready.
        *("--register=no", "--keep-unit", "--notify-ready=yes", "--kill-signal=SIGRTMIN+3"),
        *("--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=pipe"),
        *cgroups.binds(place.kernel_name),
        *(f"--bind-ro={_escaped(bind.here)}:{_escaped(bind.inside)}" for bind in spec.binds),
    ]
    if spec.host_network:
        return words
    return [
        *words,
        f"--network-namespace-path={network.NAMESPACES / place.kernel_name}",
        # Without it units with PrivateNetwork= have their loopback down.
        "--capability=CAP_NET_ADMIN,CAP_BPF",
        # IPAddressDeny= is a BPF program.
        "--system-call-filter=@keyring bpf",
    ]


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:")


def lay_files(place: Place, spec: Spec) -> None:
    """Make the container's own layer; a container that was there before keeps its files."""
    for layer in _LAYERS:
        (place.folder / layer).mkdir(parents=True, exist_ok=True)
    upper = place.folder / "upper"
    if any(upper.iterdir()):
        return
    # It becomes the container's root directory, which everybody there must be able to pass.
    upper.chmod(0o755)
    etc = upper / "etc"
    etc.mkdir()
    etc.chmod(0o755)
    texts = {"machine-id": uuid.uuid4().hex, "hostname": place.name}
    if not spec.host_network:
        texts["hosts"] = f"127.0.0.1 localhost {place.name}"
    for name, text in texts.items():
        (etc / name).write_text(f"{text}\n", encoding="utf-8")
        (etc / name).chmod(0o644)
