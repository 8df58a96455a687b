"""The file of the keys' last uses."""

import pytest

from autobot_mcp_bridge.config.keys import KeyRecord, read_uses, write_uses
from autobot_mcp_bridge.model.agents import Role
from autobot_mcp_bridge.policy.keys import KeyTable
from autobot_mcp_bridge.proxy import key_uses
from autobot_mcp_bridge.proxy.key_uses import KeyUses

RECORD = KeyRecord("00000001", "a" * 64, 1.0, None, "", None, (Role.MEMBER,), "a1", "coder")


@pytest.fixture
def table():
    made = KeyTable(lambda: 100.0)
    made.put({"acme": [RECORD]})
    return made


async def test_uses_are_written_when_there_were_any_and_go_on_from_the_file(table, tmp_path):
    path = tmp_path / "used.d" / "keys.json"
    await KeyUses(table, path).save()
    assert not path.exists()

    write_uses(path, {"acme": {"00000001": 200}, "gone": {"00000001": 5}})
    uses = KeyUses(table, path)
    await uses.recall()
    table.used(table.find("a" * 64))
    await uses.save()

    assert read_uses(path) == {"acme": {"00000001": 100}}


async def test_uses_are_not_written_at_each_call(table, tmp_path, monkeypatch):
    path = tmp_path / "used.d" / "keys.json"
    uses = KeyUses(table, path)
    table.used(table.find("a" * 64))

    await uses.save_sometimes()
    assert not path.exists()

    monkeypatch.setattr(key_uses, "EVERY", 0.0)
    await uses.save_sometimes()
    assert path.exists()


async def test_that_they_cannot_be_written_is_told_once_and_nobodys_fault(table, tmp_path, caplog):
    (tmp_path / "used.d").write_text("no directory", encoding="utf-8")
    uses = KeyUses(table, tmp_path / "used.d" / "keys.json")
    for _ in range(3):
        table.used(table.find("a" * 64))
        await uses.save()
    assert len(caplog.records) == 1

    (tmp_path / "used.d").unlink()
    await uses.save()
    assert read_uses(tmp_path / "used.d" / "keys.json") == {"acme": {"00000001": 100}}
