"""What the chain refuses has one record; whose manifest it is says the caller's key."""

import pytest

from support.audited import calls, recorded
from support.bridge import Bridge
from support.keys import client, made
from support.policed import AGENT, manifest, module, policed, refused_call

SECRET = "hunter2hunter2hunter2"
ENV = {"RESEARCH_TOKEN": SECRET}


@pytest.mark.parametrize("make", ["session", "modern"])
async def test_a_refusal_of_the_chain_is_one_record_and_shows_the_arguments_as_sent(make):
    rules = manifest(
        argument_filters=[{"name": "own", "pattern": "bad"}],
        rate_limits={"per_tool": {"notes_write-note": "1/hour"}},
        description="${RESEARCH_TOKEN}",
    )
    async with Bridge([policed()], env=ENV, manifests=[rules]) as bridge:
        async with getattr(bridge, make)("notes") as caller:
            words = {"path": "a", "text": f"bad {SECRET}"}
            await refused_call(caller, "arguments_refused", "write-note", words)
            (line,) = await recorded(bridge, 1, error="arguments_refused")

            asked = {"path": "a", "text": "fine"}
            await caller.send(caller.call_of("write-note", asked))
            await refused_call(caller, "rate_limited", "write-note", asked)
            await recorded(bridge, 1, error="rate_limited", status="blocked")

        assert (line["status"], line["tool"]) == ("blocked", "write-note")
        assert line["args"] == {"path": "a", "text": "bad <redacted-value:RESEARCH_TOKEN>"}
        assert (line["agent_id"], line["agent_type"]) == (AGENT["id"], AGENT["type"])
        assert [each["args"] for each in calls(bridge, tool="write-note", status="ok")] == [asked]


async def test_a_key_s_agent_has_its_own_manifest_and_a_token_s_the_entry_s():
    mine = manifest("writer", modules={"notes": module(tool_denylist=["plain"])})
    servers = [policed(tenant="acme")]
    async with Bridge(servers, manifests=[manifest(), mine]) as bridge:
        key, _ = await made(bridge, "acme", agent_type="writer")
        async with client(bridge, "acme.notes", key, modern=True) as writer:
            assert "plain" not in await writer.tools()
        async with bridge.modern("acme.notes") as researcher:
            assert "plain" in await researcher.tools()
