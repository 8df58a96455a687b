"""An agent names its own things and no others: paths, keys, and what custom strategies say."""

import asyncio
import json
import os

import pytest
import pytest_asyncio

from support.bridge import Bridge
from support.extensions import install
from support.policed import manifest, module, policed, refused_call

pytestmark = pytest.mark.asyncio(loop_scope="module")

ONE, OTHER = "research-01", "build-01"


def scope(strategy, *arguments, **config):
    return {"tools": ["read_note", "write-note"], "arguments": arguments, "strategy": strategy} | (
        {"config": config} if config else {}
    )


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    base = tmp_path_factory.mktemp("base")
    for agent in (ONE, OTHER):
        home = base / "agents" / agent
        (home / "deep").mkdir(parents=True)
        (home / "notes.md").write_text(f"of {agent}", encoding="utf-8")
    home = base / "agents" / ONE
    (home / "out").symlink_to("/etc")
    (home / "other").symlink_to(base / "agents" / OTHER)
    (home / "dangling").symlink_to("/no/such/place")
    (home / "inside").symlink_to(home / "deep")
    os.mkfifo(home / "fifo")
    (home / "closed").mkdir(mode=0o700)
    return base


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge(base, tmp_path_factory):
    paths = scope("prefix", "path", "paths", base_path=str(base))
    modules = {
        "notes": module(scopes=[paths]),
        "keys": module(scopes=[scope("namespace", "path")]),
        "buckets": module(scopes=[scope("bucketscope", "path")]),
        "given": module(scopes=[scope("given", "path")]),
        "faulty": module(scopes=[scope("faulty", "path")]),
        "slow": module(scopes=[scope("slow", "path")]),
    }
    servers = [
        *(policed(name) for name in modules),
        policed("notes", tenant="b", agent={"type": "research", "id": OTHER}),
        policed("buckets", tenant="b", agent={"type": "research", "id": OTHER}),
        policed("notes", tenant="c", agent={"type": "research"}),
        policed("notes", tenant="d", sessions="isolated"),
    ]
    env = install(tmp_path_factory.mktemp("site"))
    async with Bridge(servers, env=env, manifests=[manifest(modules=modules)]) as running:
        yield running


@pytest.fixture(params=["session", "modern"])
def make(request, bridge):
    return getattr(bridge, request.param)


async def reached(client, tool="read_note", **arguments):
    """The arguments as the server has got them."""
    return json.loads(await client.text(tool, **arguments))


@pytest.mark.requirement("SM-36", "SM-F10")
@pytest.mark.parametrize("instance", ["notes", "d.notes"])
async def test_a_path_of_the_agent_s_own_reaches_the_server_whole(make, base, instance):
    home = f"{base}/agents/{ONE}"
    async with make(instance) as client:
        for said in ("notes.md", "./deep/../notes.md"[:2] + "notes.md", f"{home}/notes.md", "fifo"):
            found = await reached(client, path=said)
            assert found == {"path": f"{home}/{said.rpartition('/')[2]}"}
        found = await reached(client, path="deep//new/file")
        assert found == {"path": f"{home}/deep/new/file"}
        assert await reached(client, paths=["a", "deep"]) == {
            "paths": [f"{home}/a", f"{home}/deep"]
        }
        assert await reached(client, path="") == {"path": home}


@pytest.mark.requirement("SM-35", "SM-36", "SM-38")
@pytest.mark.parametrize(
    "said",
    [
        "../build-01/notes.md",
        "../../build-01/secrets.env",
        "deep/../notes.md",
        "..",
        "/etc/passwd",
        "{base}/agents/build-01/notes.md",
        "{base}/agents/research-011/notes.md",
        "{base}/agents/research-01/../build-01/notes.md",
        "{base}",
        "/{base}/agents/research-01/notes.md",
        "out/passwd",
        "out",
        "other/notes.md",
        "dangling",
        "dangling/new",
        "inside/notes.md",
        "deep/\x00/x",
        "x" * 5000,
        "\u2025/x\x00",
    ],
)
async def test_a_path_that_leads_elsewhere_is_refused(make, base, said):
    said = said.replace("{base}", str(base))
    async with make("notes") as client:
        error = await refused_call(client, "scope_violation", "read_note", {"path": said})
        assert error["code"] == -32602
        assert "outside the agent scope" in error["message"]
        arguments = {"paths": ["notes.md", said]}
        await refused_call(client, "scope_violation", "read_note", arguments)


@pytest.mark.requirement("SM-38")
async def test_agents_of_one_type_on_one_server_s_tools_never_meet(make, base):
    async with make("notes") as one, make("b.notes") as other:
        for client, own, others in ((one, ONE, OTHER), (other, OTHER, ONE)):
            theirs = f"{base}/agents/{others}/notes.md"
            mine = f"{base}/agents/{own}/notes.md"
            assert await reached(client, path="notes.md") == {"path": mine}
            await refused_call(client, "scope_violation", "read_note", {"path": theirs})


async def test_a_caller_that_is_no_agent_has_no_scope(make):
    async with make("c.notes") as client:
        error = await refused_call(client, "scope_violation", "read_note", {"path": "notes.md"})
        assert "no agent" in error["message"]
        assert await client.text("plain", path="/etc") == '{"path": "/etc"}'  # no scope names it


@pytest.mark.parametrize("arguments", [{}, {"size": 1}])
async def test_a_scoped_tool_is_not_called_without_what_its_scope_names(make, arguments):
    async with make("notes") as client:
        error = await refused_call(client, "scope_violation", "read_note", arguments)
        assert error["message"] == "one of path, paths must be given"


async def test_a_scoped_argument_of_another_kind_is_refused(make):
    async with make("keys") as client:
        for value in (["a", ["b"]], ["a", None]):
            arguments = {"path": value, "text": "x"}
            word = "schema_mismatch"  # here the schema says so first
            await refused_call(client, word, "write-note", arguments)


@pytest.mark.requirement("SM-37")
async def test_a_key_gets_the_agent_s_name_before_it(make):
    async with make("keys") as client:
        assert await reached(client, path="a") == {"path": f"{ONE}:a"}
        # Whatever it says, it stays the agent's own.
        assert await reached(client, path=f"{OTHER}:a") == {"path": f"{ONE}:{OTHER}:a"}


@pytest.mark.requirement("SM-37")
async def test_the_document_s_bucket_scope_runs_with_its_imports_changed(make):
    async with make("buckets") as one, make("b.buckets") as other, make("given") as given:
        assert await reached(one, path="logs") == {"path": f"{ONE}-logs"}
        assert await reached(other, path="logs") == {"path": f"{OTHER}-logs"}
        assert await reached(given, path=f"{ONE}-logs") == {"path": f"{ONE}-logs"}
        error = await refused_call(given, "scope_violation", "read_note", {"path": f"{OTHER}-logs"})
        assert error["message"] == f"Bucket '{OTHER}-logs' is outside agent scope"


@pytest.mark.parametrize("instance", ["faulty", "slow"])
async def test_a_strategy_that_fails_or_hangs_lets_nothing_through(make, instance):
    async with make(instance) as client, make("keys") as other:
        found = asyncio.ensure_future(
            refused_call(client, "scope_violation", "read_note", {"path": "x"})
        )
        assert await reached(other, path="a") == {"path": f"{ONE}:a"}
        assert "cannot be checked" in (await found)["message"]
