"""Requests for packages and their results, and what root believes of a stranger's marker."""

from pathlib import Path

import pytest

from autobot_mcp_bridge.model.names import parse_instance
from autobot_mcp_bridge.units.fetch.fetches import Fetches, Request, Result, package_id
from autobot_mcp_bridge.units.fetch.install import NODE
from autobot_mcp_bridge.units.fetch.take import check
from autobot_mcp_bridge.units.host import static
from autobot_mcp_bridge.units.packages.job import InstallError
from autobot_mcp_bridge.units.packages.node import WHEEL
from autobot_mcp_bridge.units.packages.specs import parse_command
from autobot_mcp_bridge.units.packages.store import Installed, Store
from rules.tree import ROOT

NPM = parse_command(("npx", "-y", "@acme/files@1.2.3", "/srv"))
PYPI = parse_command(("uvx", "mcp[cli]>=2", "run"))


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "packages")
    made.prepare()
    return made


@pytest.fixture
def fetches(tmp_path, store):
    return Fetches(tmp_path, store)


def ended(fetches, spec, **result):
    fetches.finish(package_id(spec), Result(**result))
    fetches.take_in()


@pytest.mark.parametrize("spec", [NPM, PYPI, WHEEL], ids=lambda spec: spec.label)
def test_a_request_comes_back_as_it_was_written(spec):
    request = Request(spec, ("PIP_INDEX_URL",), "digest")
    found = Request.decode(request.encode())

    assert found.package.package == spec.package
    assert found.package.exact == spec.exact
    assert (found.passed, found.digest) == (request.passed, request.digest)


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"format": 2}', b"\xff"])
def test_what_is_no_request_is_refused(text):
    with pytest.raises(InstallError, match="not a request"):
        Request.decode(text)


def test_servers_of_one_package_share_its_unit_whatever_they_run():
    other = parse_command(("npx", "-y", "@acme/files@1.2.3", "/elsewhere"))

    assert package_id(NPM) == package_id(other)
    assert package_id(NPM) != package_id(PYPI)
    # The name of the unit's user, of which systemd takes 31 characters.
    assert len(f"mbf-{package_id(NPM)}") <= 31
    assert parse_instance(package_id(NPM)).instance == package_id(NPM)


def test_a_failure_counts_for_the_configuration_that_asked(fetches):
    fetches.refuse_failed(NPM, "one")
    ended(fetches, NPM, why="npm exited with status 1: E404", digest="one")

    with pytest.raises(InstallError, match="E404"):
        fetches.refuse_failed(NPM, "one")
    fetches.refuse_failed(NPM, "two")
    fetches.refuse_failed(PYPI, "one")
    fetches.forget_failed()
    fetches.refuse_failed(NPM, "one")


def test_a_package_that_lacks_node_waits_for_it_and_fails_with_it(fetches):
    ended(fetches, NPM, why="no node", needs_node=True, digest="one")
    fetches.refuse_failed(NPM, "one")

    ended(fetches, WHEEL, why="no such wheel", digest="one")
    with pytest.raises(InstallError, match=r"needs node.*no such wheel"):
        fetches.refuse_failed(NPM, "one")


def test_the_package_comes_after_the_node_that_it_lacked(fetches, store, monkeypatch):
    started = []
    monkeypatch.setattr(
        "autobot_mcp_bridge.units.fetch.fetches.systemctl", lambda *words: started.append(words[1])
    )
    unit = "mcp-bridge-fetch@{}.service".format
    fetches.start([NPM], (), "one")
    ended(fetches, NPM, why="no node", needs_node=True, digest="one")
    fetches.start([NPM], (), "one")
    directory = store.directory(WHEEL, WHEEL.version)
    directory.mkdir(parents=True)
    store.complete(directory, Installed(WHEEL.version, "", {}, None))
    fetches.start([NPM], (), "one")

    names = [unit(package_id(spec)) for spec in (NPM, WHEEL, NPM)]
    assert started == [{name} for name in names]


def test_the_unit_shows_installs_the_node_that_the_code_means():
    text = (ROOT / "templates" / "mcp-bridge-fetch@.service").read_text(encoding="utf-8")

    assert text.count(f"pypi/{WHEEL.directory_name}@{WHEEL.version}:{NODE}\n") == 1
    assert "mcp-bridge-fetched.path" in static.ENABLED


def marker(final, **changes):
    return {
        "version": "1.2.3",
        "integrity": "sha512-x",
        "binaries": {"files": [f"{final}/bin/files", f"{final}/main.js"]},
        "default": "files",
        "path": [f"{final}/bin", "/usr/bin"],
        **changes,
    }


def test_a_marker_of_the_package_is_believed(store):
    final = store.directory(NPM, "1.2.3")
    home = store.directory(WHEEL, WHEEL.version)
    found = marker(final, binaries={"files": [f"{home}/bin/node", f"{final}/main.js"]})

    assert check(found, "1.2.3", final, store).argv(None)[1] == f"{final}/main.js"
    own = marker(final, binaries={"files": ["/usr/bin/python3", f"{final}/run"]})
    assert check(own, "1.2.3", final, store).default == "files"


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "9.9.9"},
        {"binaries": {"files": ["/bin/sh", "-c"]}},
        {"binaries": {"files": ["/usr/bin/python3", "-c"]}},
        {"binaries": {"files": ["/usr/bin/python3", "/etc/passwd"]}},
        {"binaries": {"files": []}},
        {"binaries": {"fi\nles": ["{final}/run"]}},
        {"binaries": {"files": ["{final}/../other@1/run"]}},
        {"binaries": 3},
        {"default": "other"},
        {"path": ["/home/evil"]},
        {"path": ["{final}/.."]},
        {"integrity": "x" * 2000},
    ],
    ids=str,
)
def test_a_marker_that_names_anything_else_is_not(store, changes):
    final = store.directory(NPM, "1.2.3")
    with pytest.raises(InstallError):
        check(marker(final, **_filled(changes, final)), "1.2.3", final, store)


def test_a_python_that_others_may_write_is_not_run(store, tmp_path):
    final = store.directory(NPM, "1.2.3")
    python = tmp_path / "python3"
    Path(python).write_text("")
    python.chmod(0o777)
    with pytest.raises(InstallError, match="is not of this package"):
        check(marker(final, binaries={"files": [str(python)]}), "1.2.3", final, store)


def _filled(value, final):
    if isinstance(value, str):
        return value.replace("{final}", str(final))
    if isinstance(value, list):
        return [_filled(item, final) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, final) for key, item in value.items()}
    return value
