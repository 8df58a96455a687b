"""The OpenAPI document against the API that is served: schemathesis finds nothing, in a bounded run."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from autobot_mcp_bridge.model.agents import Role
from support.bridge import Bridge
from support.fakes import echo
from support.keys import made
from support.waiting import PATIENCE

EXAMPLES = 40  # generated requests an operation, beside those of its coverage phase
WITHIN = 120.0 * PATIENCE  # seconds for one run
# `ignored_auth` sends requests without the key and is told 401, as every other check is.
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,unsupported_method,allow_header_conformance,ignored_auth"
)


async def schemathesis(bridge, key, *words, config=""):
    """Its exit status and what it says."""
    path = bridge.root / "schemathesis.toml"
    path.write_text(config, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(Path(sys.executable).with_name("schemathesis"), f"--config-file={path}", "run"),
        *(f"{bridge.base}/v1/openapi.json", f"--header=Authorization: Bearer {key}"),
        *(f"--checks={CHECKS}", f"--max-examples={EXAMPLES}", "--seed=1", "--no-color"),
        *("--phases=examples,coverage,fuzzing", "--suppress-health-check=all", "--warnings=off"),
        *("--generation-database=none", "--continue-on-failure", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=bridge.root,
        env={"PATH": os.environ["PATH"], "HOME": str(bridge.root), "LANG": "C.UTF-8"},
    )
    try:
        async with asyncio.timeout(WITHIN):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, out.decode()


@pytest.mark.parametrize("known", [False, True], ids=["any-id", "a-server-that-is-there"])
async def test_schemathesis_finds_no_5xx_and_no_answer_that_the_document_does_not_tell(known):
    home = {"tenant": "acme", "project": "web"}
    async with Bridge([echo("files", **home), echo("notes", tenant="acme")]) as bridge:
        role = Role.TENANT_ADMIN if known else Role.MEMBER
        key, _ = await made(bridge, "acme", roles=[role])
        # Out of service a server answers 503, as the document says and this check does not like.
        words = ("--exclude-operation-id=withdrawServer",) if known else ()
        config = '[parameters]\nid = "acme.web.files"\n' if known else ""

        status, said = await schemathesis(bridge, key, *words, config=config)

        assert status == 0, said[-8000:]
        assert not bridge.log().count("fault while")
