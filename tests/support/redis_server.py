"""A real redis-server: of PATH, or Debian's packages unpacked in the cache directory."""

import os
import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

from clients.setup import cache_dir
from support.unpacked import CannotFetchError, run
from support.waiting import PATIENCE

PACKAGE = "redis-server"
# Libraries that every Debian has; another version of them beside the loader would break it.
_THERE = re.compile(r"lib(c6|c-bin|gcc-s1|crypt1)$")
STOP = 10.0 * PATIENCE  # seconds from SIGTERM to its exit


def redis_server() -> tuple[Path, Path | None]:
    """The program, and where its libraries are if not the system's.

    Raises:
        CannotFetchError: apt cannot fetch it, or this is no Debian.
    """
    found = shutil.which(PACKAGE)
    if found is not None:
        return Path(found), None
    kept = cache_dir() / "redis"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as name:
            folder = Path(name, "redis")
            folder.mkdir()
            run(folder, "apt-get", "download", *_packages())
            for archive in folder.glob("*.deb"):
                run(folder, "dpkg-deb", "--extract", archive.name, ".")
                archive.unlink()
            folder.rename(kept)
    (libraries,) = (kept / "usr" / "lib").glob("*-linux-gnu*")
    return kept / "usr" / "bin" / PACKAGE, libraries


def _packages() -> list[str]:
    """It and the libraries that it needs."""
    words = ("--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks")
    try:
        done = subprocess.run(
            ["apt-cache", "depends", *words, "--no-replaces", "--no-enhances", PACKAGE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotFetchError(f"apt-cache: {error}") from error
    named = set(re.findall(r"^([a-z][a-z0-9.+-]+)$", done.stdout, re.MULTILINE))
    libraries = {
        name for name in named if name.startswith(("lib", "lua")) and not _THERE.match(name)
    }
    return [PACKAGE, "redis-tools", *sorted(libraries)]


class RedisServer:
    """`with RedisServer(folder) as server`: one that keeps nothing, on a Unix socket."""

    def __init__(self, folder: Path, password: str = "") -> None:
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._folder, self._password = folder, password
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        program, libraries = redis_server()
        secret = ["--requirepass", self._password] if self._password else []
        self._process = subprocess.Popen(
            [
                *(str(program), "--port", "0", "--unixsocket", str(self.socket)),
                *("--unixsocketperm", "777", "--save", "", "--appendonly", "no"),
                *("--dir", str(self._folder), "--logfile", str(self._folder / "log"), *secret),
            ],
            env={**os.environ, **({"LD_LIBRARY_PATH": str(libraries)} if libraries else {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @property
    def listening(self) -> bool:
        return self.socket.exists()

    def freeze(self, number: int) -> None:
        """Send it a signal: SIGSTOP, SIGCONT."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
        with suppress(FileNotFoundError):
            self.socket.unlink()
