"""The official client gets its token by itself: challenge, metadata, issuer, call (F5)."""

import json
import sys

import jwt
import pytest

from clients import drivers
from support.bridge import Bridge
from support.fakes import echo
from support.issuer import Issuer, free_port


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(("flow", "subject"), [("credentials", "tests"), ("consent", "alice")])
async def test_the_python_client_finds_the_issuer_and_calls(need, tmp_path, flow, subject):
    port = free_port()
    public = f"http://127.0.0.1:{port}"
    async with Issuer(need("issuer")) as issuer:
        host = {
            "listen": {"port": port},
            "http": {"public_url": public},
            "oauth": {"issuer": issuer.url, "scopes": ["mcp:{tenant}"]},
        }
        async with Bridge([echo("files", tenant="acme")], host=host) as bridge:
            url = bridge.url("acme.files")
            assert url.startswith(public)
            words = (url, flow, issuer.url, issuer.secret, "mcp:acme")
            script = str(drivers.HERE / "drive_oauth.py")
            seen = json.loads(await drivers.output_of([sys.executable, script, *words], tmp_path))
            assert seen["text"] == "across"
            claims = jwt.decode(seen["token"], options={"verify_signature": False})
            assert (claims["sub"], claims["aud"]) == (subject, url)
            assert "mcp:acme" in claims["scope"].split()
            assert seen["token"] not in bridge.log()
