"""Root's copy of the clients' certificate: when it is made, of what, and where that is watched."""

import pytest

from autobot_mcp_bridge.config.certificates import CertificateError, certificate_of
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.host import Tls
from autobot_mcp_bridge.units import certificate
from autobot_mcp_bridge.units.certificate import Taking
from autobot_mcp_bridge.units.sandbox.confinement import Facts
from support.authority import Authority

NONE = Tls()


@pytest.fixture
def host(tmp_path, monkeypatch):
    """What is judged of root's directories is shown elsewhere: those of a test are anybody's."""
    monkeypatch.setattr(certificate, "distrust", lambda _path, owner: "")
    monkeypatch.setattr(certificate, "others_place", lambda _path: "")
    for name in ("run", "units", "live", "archive"):
        (tmp_path / name).mkdir()
    return Host(tmp_path, monkeypatch)


class Host:
    """An ACME client's directories, and what systemd is told."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.said, self.told = [], []
        self.number = 0
        monkeypatch.setattr(certificate, "daemon_reload", lambda: self.told.append("daemon-reload"))
        monkeypatch.setattr(
            certificate, "systemctl", lambda verb, units: self.told.append(f"{verb} {units}")
        )
        self.places = Places(folder / "etc", folder / "var", folder / "run")
        self.taking = Taking(self.places, Facts(), folder / "units", self.said.append)
        self.authority = Authority(folder)
        self.tls = Tls(
            certificate=str(folder / "live" / "fullchain.pem"), key=str(folder / "live" / "key.pem")
        )
        self.renew()

    def renew(self, **options):
        """As certbot does: new files, and links switched one after the other."""
        self.number += 1
        files = [self.folder / "archive" / f"{name}{self.number}.pem" for name in ("c", "k")]
        self.authority.renew(*files, **options)
        for name, file in zip(("fullchain.pem", "key.pem"), files, strict=True):
            link = self.folder / "live" / f"{name}.new"
            link.symlink_to(f"../archive/{file.name}")
            link.rename(link.with_suffix(""))

    @property
    def taken(self):
        return self.places.tls_pem.read_bytes()


def test_a_pair_is_taken_once_and_again_when_a_link_is_switched(host):
    assert host.taking.is_stale(host.tls)
    assert host.taking.take(host.tls) == ""
    first = host.taken
    assert certificate_of(first).names == ("localhost", "127.0.0.1")
    assert not host.taking.is_stale(host.tls)
    assert host.places.tls_pem.stat().st_mode & 0o777 == 0o640

    assert host.taking.take(host.tls) == ""
    assert host.said == ["taking the certificate for localhost, 127.0.0.1"]

    host.renew()
    assert host.taking.is_stale(host.tls)
    assert host.taking.take(host.tls) == ""
    assert certificate_of(host.taken).fingerprint != certificate_of(first).fingerprint


def test_a_pair_that_cannot_be_used_leaves_what_was_taken_and_says_why(host):
    host.taking.take(host.tls)
    before = host.taken
    host.renew(days=-1)

    assert "host.toml: $.tls: no client would take it: certificate has expired" in (
        host.taking.take(host.tls)
    )
    assert host.taken == before
    with pytest.raises(CertificateError, match="expired"):
        host.taking.look(host.tls)
    host.renew()
    assert host.taking.take(host.tls) == ""
    assert host.taken != before


@pytest.mark.parametrize(
    ("patched", "why"), [("distrust", "it must belong to root"), ("others_place", "write it")]
)
def test_a_pair_of_others_than_root_is_not_taken(host, monkeypatch, patched, why):
    monkeypatch.setattr(certificate, patched, lambda _path, **_: "it must belong to root")
    assert why in host.taking.take(host.tls)
    assert not host.places.tls_pem.exists()


def test_a_secret_that_is_not_there_is_named_with_the_command_that_makes_it(host):
    tls = Tls(certificate=host.tls.certificate, key="no-such-key")
    assert "run: mcp-bridge secret set no-such-key" in host.taking.take(tls)


def test_without_tls_what_was_taken_goes(host):
    host.taking.take(host.tls)
    assert host.taking.take(NONE) == ""
    assert b"PRIVATE KEY" not in host.taken
    assert not host.taking.is_stale(NONE)


def test_the_directories_of_the_links_and_of_the_files_are_watched(host):
    drop_in = host.folder / "units" / "mcp-bridge-apply.path.d" / "50-mcp-bridge.conf"
    assert host.taking.watch(host.tls)
    lines = drop_in.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("PathChanged=")] == [
        f"PathChanged={host.folder}/archive",
        f"PathChanged={host.folder}/live",
    ]
    assert host.told == ["daemon-reload", "try-restart ['mcp-bridge-apply.path']"]

    assert not host.taking.watch(host.tls)
    assert len(host.told) == 2
    assert host.taking.watch(NONE)
    assert not drop_in.exists()
    assert not host.taking.watch(NONE)
