#!/usr/bin/env python3
"""What the policy chain costs: gateway CPU a call, bare and with each of its parts, in one run.

One proxy serves the same server under several names, whose calls are made in turn, so that whatever
else the machine does meets all of them alike. `--show` prints a line with the bar alone.
"""

import argparse
import asyncio
import hashlib
import json
import secrets
import sys

import uvloop

import suites
import targets
from loadgen import callers, load, stop

CALLERS, ROUNDS = 16, 40
BAR = 1.6  # times the bare path, with everything at once
GLOBS = [f"no_such_{number}_*" for number in range(19)] + ["ech*"]
PATTERNS = (
    "(?i)(password|secret|api.?key)",
    r"\.\./",
    "AKIA[0-9A-Z]{16}",
    "-----BEGIN",
    "drop table",
)
MANY = "999999/minute"
FILTERS = [{"name": f"f{number}", "pattern": each} for number, each in enumerate(PATTERNS)]
RATES = {"global": MANY, "per_tool": {"*": MANY}}
LIMITS = {"principal": MANY, "tools": {"e*": MANY}}


def manifest(name, globs=(), **settings):
    module = {"type": "mcp_proxy", "config": {"tool_allowlist": list(globs)}}
    return {"agent_type": name, "modules": {name: module}, **settings}


# Name: what the server's entry adds, and its manifest, if it has one.
CASES = {
    "bare": ({}, None),
    "globs": ({"tools": {"allow": GLOBS}}, None),
    "limits": ({"rates": LIMITS}, None),  # two; everything at once has three
    "schema": ({}, manifest("schema")),
    "filters": ({}, manifest("filters", argument_filters=FILTERS)),
    "answers": ({}, manifest("answers", response_filters=[{**FILTERS[0], "action": "redact"}])),
    "all": ({"rates": {"principal": MANY}}, manifest("all", GLOBS, argument_filters=FILTERS, rate_limits=RATES)),
}  # fmt: skip


async def policed(gateway):
    """The proxy, with an endpoint for each case."""
    token = "mcpb_" + secrets.token_urlsafe(32)
    shared = {
        "command": gateway.command,
        "tokens_sha256": [hashlib.sha256(token.encode()).hexdigest()],
    }
    config, state, runtime = (gateway.folder / name for name in ("config", "state", "run"))
    (config / "manifests.d").mkdir(parents=True)
    servers = []
    for name, (more, found) in CASES.items():
        agent = {"agent": {"type": name, "id": "one"}} if found else {}
        servers.append({"name": name, **shared, **agent, **more})
        if found:
            path = config / "manifests.d" / f"{name}.json"
            path.write_text(json.dumps(found), encoding="utf-8")
    text = json.dumps({"version": 1, "servers": servers})
    (config / "servers.json").write_text(text, encoding="utf-8")
    ports = "[listen]\nport = 0\n\n[operator]\nport = 0\n"
    (config / "host.toml").write_text(ports, encoding="utf-8")
    gateway.spawn(
        *(sys.executable, "-m", "autobot_mcp_bridge.cli.main", "serve"),
        MCP_BRIDGE_CONFIG_DIR=str(config),
        MCP_BRIDGE_STATE_DIR=str(state),
        MCP_BRIDGE_RUNTIME_DIR=str(runtime),
        PYTHONPATH=str(targets.HERE.parent / "supervisor"),
    )

    async def url():
        return json.loads((runtime / "endpoint.json").read_bytes())["url"]

    base = await gateway.until(url, "endpoint.json")
    for name in CASES:
        headers = {"Authorization": f"Bearer {token}"}
        gateway.add(f"{base}/t/default/s/{name}/mcp", headers=headers)


async def measured(rounds):
    """CPU a call by case, in ms: that of the best of its slices."""
    targets.ALL["policed"] = policed
    gateway = await targets.start("policed")
    try:
        clients = [await callers(endpoint, CALLERS) for endpoint in gateway.endpoints]
        found = {name: suites.Measurement(gateway) for name in CASES}
        for ready in clients:
            await load(ready, suites.SMALL, calls=suites.SLICE[suites.SMALL])
        for _ in range(rounds):
            for measurement, ready in zip(found.values(), clients, strict=True):
                await measurement.add(ready, suites.SMALL)
        for ready in clients:
            await stop(ready)
    finally:
        await asyncio.to_thread(gateway.stop)
    return {name: measurement.row() for name, measurement in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--show", action="store_true", help="the bar alone")
    options = parser.parse_args()
    rows = uvloop.run(measured(options.rounds))
    bare = rows["bare"]["cpu_ms"]
    if not options.show:
        print("| with | CPU a call, ms | more than bare, ms | times bare |\n|---|---|---|---|")
        for name, row in rows.items():
            cpu = row["cpu_ms"]
            print(f"| {name} | {cpu:.4f} | {cpu - bare:.4f} | {cpu / bare:.2f} |")
    times = rows["all"]["cpu_ms"] / bare
    verdict = "PASS" if times <= BAR else "FAIL"
    print(f"policy, CPU a call: {times:.2f} x bare (bar: at most {BAR}) {verdict}")
    return 0 if times <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
