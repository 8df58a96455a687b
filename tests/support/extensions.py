"""An installed package of somebody's, with hooks and a scope, for a proxy of a test.

It is a module and its dist-info on PYTHONPATH: all that an entry point needs.
"""

import os
from pathlib import Path

HOOKS = """
import asyncio, json, threading, time

def picky(who, tool, arguments):
    if "boom" in json.dumps(arguments):
        raise ValueError("this text quotes " + json.dumps(arguments))
    return arguments

def spoil(who, tool, arguments):
    if arguments.get("text") == "spoil":
        arguments["size"] = "no number"
    return arguments

def half(who, tool, arguments):
    arguments["text"] = "half way"
    if arguments.get("kind") == "a":
        raise KeyError("kind")
    return arguments

async def sign(who, tool, arguments):
    return {**arguments, "text": arguments.get("text", "") + f"|{who.agent_id}:{who.agent_type}:{tool}"}

def second(who, tool, arguments):
    return {**arguments, "text": arguments["text"] + "|second"}

def hangs(who, tool, arguments):
    threading.Event().wait()

async def sleeps(who, tool, arguments):
    await asyncio.Event().wait()

def nothing(who, tool, arguments):
    return None

def unwritable(who, tool, arguments):
    return {"text": object()}

def reads_loop(who, tool, arguments):
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return {**arguments, "text": "in a thread"}
    return {**arguments, "text": "in the loop"}
"""  # fmt: skip
# The custom strategy of scoped-mcp's document, but for its imports.
SCOPES = '''
from autobot_mcp_bridge.policy.scopes import AgentContext, ScopeStrategy, ScopeViolation

class BucketScope(ScopeStrategy):
    def apply(self, value: str, agent_ctx: AgentContext) -> str:
        return f"{agent_ctx.agent_id}-{value}"

    def enforce(self, value: str, agent_ctx: AgentContext) -> None:
        prefix = f"{agent_ctx.agent_id}-"
        if not value.startswith(prefix):
            raise ScopeViolation(f"Bucket '{value}' is outside agent scope")


class Given(BucketScope):
    """As the other, for values that bear the prefix already."""

    def apply(self, value, agent_ctx):
        return value


class Faulty(BucketScope):
    def enforce(self, value, agent_ctx):
        raise RuntimeError("a fault of the strategy's own")


class Slow(BucketScope):
    def enforce(self, value, agent_ctx):
        import threading
        threading.Event().wait()
'''
NAMES = {
    "autobot_mcp_bridge.hooks": [
        *("picky", "spoil", "half", "sign", "second", "hangs", "sleeps", "nothing"),
        *("unwritable", "reads_loop"),
    ],
    "autobot_mcp_bridge.scopes": ["BucketScope", "Given", "Faulty", "Slow"],
}


def install(folder: Path) -> dict[str, str]:
    """Write the package below a folder; the environment of a proxy that has it."""
    folder.chmod(0o755)
    (folder / "somebodys_hooks.py").write_text(HOOKS, encoding="utf-8")
    (folder / "somebodys_scopes.py").write_text(SCOPES, encoding="utf-8")
    info = folder / "somebodys-1.0.dist-info"
    info.mkdir()
    text = "Metadata-Version: 2.1\nName: somebodys\nVersion: 1.0\n"
    (info / "METADATA").write_text(text, encoding="utf-8")
    lines = []
    for (group, names), module in zip(NAMES.items(), ("hooks", "scopes"), strict=True):
        lines += [f"[{group}]", *(f"{n.lower()} = somebodys_{module}:{n}" for n in names), ""]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    path = os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", ""))).rstrip(os.pathsep)
    return {"PYTHONPATH": path}
