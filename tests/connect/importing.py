"""Imports into directories of a test's own, with a store whose encryption turns letters round."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.cli import importing
from autobot_mcp_bridge.cli.main import main
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.unbuilt import UNBUILT
from autobot_mcp_bridge.units import secrets
from autobot_mcp_bridge.units.sandbox.confinement import Facts
from support.configured import places_in

FILES = Path(__file__).parent / "files"
MANIFEST = json.loads((FILES / "manifest.json").read_text(encoding="utf-8"))
# A secret of the files, with as much around it as makes it one.
SENTINEL = re.compile(r"[\w+./-]*SENTINEL\d{4}[\w+./-]*")
MARK = re.compile(r"SENTINEL\d{4}")
UPSTREAMS = "url" not in UNBUILT


@dataclass
class Host:
    """A host that imports: its places, its store, and what the command said last."""

    places: Places
    store: secrets.Secrets
    status: int = -1
    out: str = ""
    err: str = ""

    def tree(self) -> dict[str, tuple[int, bytes]]:
        """Every file below its directories, with its inode, so that a rewrite shows."""
        root = self.places.config_dir.parent
        files = [path for path in sorted(root.rglob("*")) if path.is_file()]
        return {str(p.relative_to(root)): (p.stat().st_ino, p.read_bytes()) for p in files}

    def outside(self) -> str:
        """All that it has said and written, but for the store."""
        kept = str(self.places.encrypted_credentials.relative_to(self.places.config_dir.parent))
        texts = [data.decode() for name, (_, data) in self.tree().items() if kept not in name]
        return "\n".join((*texts, self.out, self.err))

    def stored(self) -> dict[str, str]:
        """Each secret of the store, decrypted."""
        found = self.places.encrypted_credentials.glob("*")
        return {path.name: path.read_text(encoding="utf-8")[::-1] for path in found}

    def servers(self) -> dict[str, dict]:
        """The definitions of all files, by name."""
        files = sorted(self.places.servers_d.glob("*.json"))
        documents = [json.loads(file.read_text(encoding="utf-8")) for file in files]
        return {each["name"]: each for document in documents for each in document["servers"]}


def host_in(root: Path, monkeypatch, *, units: bool = True) -> Host:
    """A host below that directory; without units nothing has secrets."""
    places = places_in(root)
    places.state_dir.mkdir()
    monkeypatch.setattr(secrets, "ENCRYPT", ("rev",))
    monkeypatch.setattr(secrets, "DECRYPT", ("sh", "-c", 'rev "$0"'))
    store = secrets.Secrets(places, Facts(credentials=str(root / "credstore")))
    if units:
        places.accepted.write_text("{}\n", encoding="utf-8")
        monkeypatch.setattr(importing, "store_of", lambda _places: store)
    return Host(places, store)


def run(host: Host, capsys, *words: str) -> int:
    """Run `mcp-bridge import` with these words; the exit status."""
    places = host.places
    try:
        host.status = main(
            [
                f"--config-dir={places.config_dir}",
                f"--state-dir={places.state_dir}",
                f"--runtime-dir={places.runtime_dir}",
                "import",
                *words,
            ]
        )
    except SystemExit as end:  # argparse's way
        host.status = int(end.code or 0)
    host.out, host.err = capsys.readouterr()
    return host.status


def imported(host: Host, capsys, *words: str) -> list[dict]:
    """Import with --json; its entries."""
    run(host, capsys, *words, "--json")
    return json.loads(host.out)["entries"]
