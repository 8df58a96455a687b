"""A real OpenID Provider on loopback (tests/issuer), and tokens that its keys have signed by hand."""

import asyncio
import base64
import json
import os
import secrets
import shutil
import socket
import time
import urllib.parse
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from support.waiting import PATIENCE, eventually
from support.wire import exchange

START_WITHIN = 30.0 * PATIENCE
CLIENT = "tests"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


class SigningKey:
    """A private key with its kid, as the issuer and as a test use it."""

    def __init__(self, alg: str = "RS256", kid: str | None = None) -> None:
        self.alg = alg
        self.kid = kid or secrets.token_hex(4)
        if alg.startswith("ES"):
            self.private: Any = ec.generate_private_key(ec.SECP256R1())
        else:
            self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @property
    def jwk(self) -> dict[str, Any]:
        found: dict[str, Any] = jwt.get_algorithm_by_name(self.alg).to_jwk(
            self.private, as_dict=True
        )
        found.pop("key_ops", None)
        return {**found, "kid": self.kid, "use": "sig", "alg": self.alg}

    @property
    def public_jwk(self) -> dict[str, Any]:
        return {name: self.jwk[name] for name in ("kty", "n", "e", "kid")}

    def sign(self, claims: dict[str, Any], **headers: Any) -> str:
        merged = {"kid": self.kid, "typ": "at+jwt", **headers}
        kept = {name: value for name, value in merged.items() if value is not None}
        return jwt.encode(claims, self.private, self.alg, headers=kept)


def unsigned(claims: dict[str, Any], **header: Any) -> str:
    """A token with `alg` none, or with whatever head is given, and without a signature."""
    parts = ({"alg": "none", "typ": "JWT", **header}, claims)
    texts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts]
    return b".".join((*texts, b"")).decode()


class Issuer:
    """`async with Issuer(folder) as issuer`: a provider that can be stopped and started again."""

    def __init__(
        self, folder: Path, *, scopes: tuple[str, ...] = ("mcp:acme", "mcp:rival"), ttl: int = 600
    ) -> None:
        self._folder = folder
        self._port = free_port()
        self._scopes = scopes
        self._ttl = ttl
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self.url = f"http://127.0.0.1:{self._port}"
        self.secret = secrets.token_urlsafe(24)
        self.key = SigningKey()
        self.seen: list[str] = []  # every request, as method and path

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        node = shutil.which("node")
        assert node is not None
        client = {
            "client_id": CLIENT,
            "client_secret": self.secret,
            "grant_types": ["client_credentials"],
            "redirect_uris": [],
            "response_types": [],
            "token_endpoint_auth_method": "client_secret_basic",
            "id_token_signed_response_alg": self.key.alg,
        }
        other = {**client, "client_id": "other"}
        settings = {
            "port": self._port,
            "keys": [self.key.jwk],
            "clients": [client, other],
            "scopes": self._scopes,
            "ttl": self._ttl,
            "alg": self.key.alg,
        }
        self._process = await asyncio.create_subprocess_exec(
            *(node, "provider.mjs"),
            cwd=self._folder,
            env={"PATH": os.environ["PATH"], "ISSUER_SETTINGS": json.dumps(settings)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        self._reader = asyncio.create_task(self._read(self._process))
        await eventually(lambda: "ready" in self.seen, within=START_WITHIN, what="the issuer")
        self.seen.clear()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self.seen.append(line.decode().strip())

    async def stop(self) -> None:
        """Idempotent."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        assert self._reader is not None
        await self._reader
        self._process = None

    async def rotate(self, key: SigningKey | None = None) -> None:
        """Go on with another key only."""
        await self.stop()
        self.key = key or SigningKey()
        await self.start()

    def asked_for_keys(self) -> int:
        return self.seen.count("GET /jwks")

    async def token(self, resource: str, scope: str = "", client: str = CLIENT) -> str:
        """An access token by client_credentials for one resource (RFC 8707)."""
        fields = {"grant_type": "client_credentials", "resource": resource}
        if scope:
            fields["scope"] = scope
        basic = base64.b64encode(f"{client}:{self.secret}".encode()).decode()
        headers = {
            "Authorization": f"Basic {basic}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        body = urllib.parse.urlencode(fields).encode()
        response = await exchange(f"{self.url}/token", "POST", headers, body)
        assert response.status == 200, response
        found: str = json.loads(response.body)["access_token"]
        return found

    def claims(self, resource: str, **other: Any) -> dict[str, Any]:
        """What a right token says; other claims replace it, None takes one away."""
        now = int(time.time())
        found = {
            "iss": self.url,
            "sub": CLIENT,
            "client_id": CLIENT,
            "aud": resource,
            "scope": "mcp:acme",
            "iat": now,
            "exp": now + 300,
            **other,
        }
        return {name: value for name, value in found.items() if value is not None}

    def made(self, resource: str, **other: Any) -> str:
        """A token with these claims, signed with the issuer's key."""
        return self.key.sign(self.claims(resource, **other))
