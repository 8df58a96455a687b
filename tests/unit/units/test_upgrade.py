"""Newer versions: asked for, installed beside the old ones, or refused; by the real npm and uv."""

import pytest

from autobot_mcp_bridge.units.fetch.fetches import Request
from autobot_mcp_bridge.units.packages import newest
from autobot_mcp_bridge.units.packages.installer import install_package, upgrade_package
from autobot_mcp_bridge.units.packages.job import InstallError, Job
from autobot_mcp_bridge.units.packages.newest import Newest
from autobot_mcp_bridge.units.packages.specs import parse_command
from autobot_mcp_bridge.units.packages.store import Resolution
from support.registry import serving

NPM, PYPI = "npx @made/tool@^1", "uvx --from made-tool<2 made-tool"


@pytest.fixture
def registry():
    with serving() as found:
        publish(found, "1.0.0")
        yield found


@pytest.fixture
def job(store, environ):
    return Job(store.log_file("test"), environ)


def publish(registry, *versions):
    registry.add_npm("@made/tool", list(versions))
    registry.add_pypi("made-tool", list(versions))


@pytest.mark.parametrize("command", [NPM, PYPI])
def test_an_upgrade_gives_the_newest_allowed_beside_the_one_before(command, registry, store, job):
    spec = parse_command(command.split())
    install_package(spec, store, job)
    publish(registry, "1.0.0", "1.5.0", "2.0.0")

    done = upgrade_package(spec, [spec.binary], store, job)

    assert done.version == "1.5.0"
    assert store.resolution(spec) == Resolution("1.5.0", "1.0.0")
    assert store.find(spec) == done
    assert store.read(store.directory(spec, "1.0.0")) is not None
    assert done.integrity


@pytest.mark.parametrize("command", [NPM, PYPI])
def test_what_cannot_be_installed_changes_nothing(command, registry, store, job):
    spec = parse_command(command.split())
    before = install_package(spec, store, job)
    publish(registry, "1.0.0", "1.5.0")
    registry.spoil("1.5.0")

    with pytest.raises(InstallError):
        upgrade_package(spec, [spec.binary], store, job)

    assert store.resolution(spec) == Resolution("1.0.0")
    assert store.find(spec) == before


@pytest.mark.parametrize("command", [NPM, PYPI])
def test_a_version_without_a_program_that_some_server_needs_is_refused(
    command, registry, store, job
):
    spec = parse_command(command.split())
    install_package(spec, store, job)
    publish(registry, "1.0.0", "1.5.0")

    with pytest.raises(InstallError, match=r"version 1\.5\.0: the package has no program other"):
        upgrade_package(spec, [spec.binary, "other"], store, job)

    assert store.resolved(spec) == "1.0.0"


def test_the_newest_allowed_and_the_newest_of_all_are_told_for_each(registry, store, environ):
    publish(registry, "1.0.0", "1.5.0", "2.0.0")
    commands = (
        NPM,
        PYPI,
        "npx @made/tool",
        "uvx made-tool",
        "npx @made/tool@1.0.0",
        "uvx made-tool@1.0.0",
    )
    specs = [parse_command(command.split()) for command in commands]

    found = newest.ask(specs, store, environ)

    allowed = ("1.5.0", "1.5.0", "2.0.0", "2.0.0", "1.0.0", "1.0.0")
    assert [found[spec] for spec in specs] == [Newest(version, "2.0.0") for version in allowed]
    assert not any(store.find(spec) for spec in specs)


def test_what_one_registry_does_not_know_is_told_in_its_place_alone(registry, store, environ):
    lost = [parse_command(["npx", "no-such-thing"]), parse_command(["uvx", "no-such-thing"])]
    there = parse_command(PYPI.split())

    found = newest.ask([*lost, there], store, environ)

    assert all("no-such-thing" in found[spec].why for spec in lost)
    assert all(str(store.root.parent) not in found[spec].why for spec in lost)
    assert not any("(log:" in found[spec].why for spec in lost)
    assert found[there] == Newest("1.0.0", "1.0.0")


def test_a_registry_that_never_answers_is_left_at_the_deadline(
    registry, store, environ, monkeypatch
):
    monkeypatch.setattr(newest, "ASK_SECONDS", 1.0)
    registry.gate.clear()
    spec = parse_command(PYPI.split())

    found = newest.ask([spec], store, environ)

    assert "not done after 1 s" in found[spec].why


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {"allowed": "1", "newest": "2"},
        {"allowed": "1", "newest": None, "why": ""},
        {"allowed": "1; rm", "newest": "2", "why": ""},
        {"allowed": "1", "newest": "\n", "why": ""},
    ],
)
def test_a_strangers_word_has_the_form_of_an_answer_or_is_none(said):
    assert Newest.read(said) == Newest(why="an answer that is not understood")


def test_an_answer_of_another_process_is_read_as_it_was_meant():
    assert Newest.read({"allowed": "1.0", "newest": "2!1.0", "why": ""}) == Newest("1.0", "2!1.0")
    assert Newest.read({"allowed": None, "newest": None, "why": "x" * 9999}).why == "x" * 2000


def test_a_request_for_an_upgrade_names_the_programs_that_it_must_have():
    request = Request(parse_command(NPM.split()), (), "upgrade", (None, "other"))

    assert Request.decode(request.encode()).upgrade == (None, "other")


def test_a_job_ends_after_its_own_seconds(tmp_path):
    job = Job(tmp_path / "log", {}, seconds=0)

    with pytest.raises(InstallError, match="not done after 0 s"):
        job.check("it")
