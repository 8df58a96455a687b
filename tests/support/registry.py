"""A registry of both kinds on 127.0.0.1, with packages made up on the spot: npm and uv are real."""

import hashlib
import io
import json
import socket
import tarfile
import threading
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Registry:
    """What it serves, and what it was asked for.

    Attributes:
        hits: paths in the order of the requests.
        gate: answers wait for it; clear it to hold every install where it is.
    """

    def __init__(self) -> None:
        self.files: dict[str, tuple[str, bytes]] = {}
        self.hits: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.asked = threading.Event()
        self.url = ""

    def add_npm(
        self,
        name: str,
        versions: list[str],
        script: str = "console.log('hi')",
        postinstall: str = "",
    ) -> None:
        """Publish a package whose one program, named as the package, is the script.

        @VERSION@ in it becomes the version.
        """
        rows = {}
        for version in versions:
            binary = name.rpartition("/")[2]
            manifest: dict[str, object] = {"name": name, "version": version}
            manifest["bin"] = {binary: "main.js"}
            if postinstall:
                manifest["scripts"] = {"postinstall": postinstall}
                manifest["hasInstallScript"] = True
            archive = _tar(
                {
                    "package/package.json": json.dumps(manifest),
                    "package/main.js": "#!/usr/bin/env node\n"
                    + script.replace("@VERSION@", version)
                    + "\n",
                }
            )
            path = f"/{name}/-/{binary}-{version}.tgz"
            self.files[path] = ("application/octet-stream", archive)
            integrity = "sha512-" + b64encode(hashlib.sha512(archive).digest()).decode()
            dist = {"tarball": self.url + path, "integrity": integrity}
            rows[version] = {**manifest, "dist": dist}
        document = {"name": name, "dist-tags": {"latest": versions[-1]}, "versions": rows}
        answer = ("application/json", json.dumps(document).encode())
        self.files[f"/{name}"] = self.files[f"/{name.replace('/', '%2f')}"] = answer

    def add_pypi(
        self,
        name: str,
        versions: list[str],
        code: str = "print('hi')",
        more: dict[str, str] | None = None,
    ) -> None:
        """Publish a package whose one console script, named as the package, runs the code.

        @VERSION@ in it becomes the version.
        """
        links = []
        for version in versions:
            flat = name.replace("-", "_")
            info = f"{flat}-{version}.dist-info"
            files = {
                **(more or {}),
                f"{flat}.py": f"def main():\n    {code.replace('@VERSION@', version)}\n",
                f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
                f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\n"
                "Tag: py3-none-any\n",
                f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {flat}:main\n",
            }
            record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
            wheel = _zip({**files, f"{info}/RECORD": record})
            file = f"{flat}-{version}-py3-none-any.whl"
            self.files[f"/wheels/{file}"] = ("application/octet-stream", wheel)
            digest = hashlib.sha256(wheel).hexdigest()
            links.append(f'<a href="/wheels/{file}#sha256={digest}">{file}</a>')
        page = f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>"
        self.files[f"/simple/{name}/"] = ("text/html", page.encode())

    def spoil(self, version: str) -> None:
        """Have the archives of this version be other ones than their digests say."""
        for path, (kind, body) in self.files.items():
            if kind == "application/octet-stream" and f"-{version}" in path:
                self.files[path] = (kind, body + b"spoiled")

    @property
    def environ(self) -> dict[str, str]:
        """The variables that make npm, uv and pip ask here."""
        return {
            "npm_config_registry": self.url + "/",
            "npm_config_fetch_retries": "0",
            "UV_DEFAULT_INDEX": self.url + "/simple/",
            "UV_INDEX": "",
            "UV_FIND_LINKS": "",
            "UV_HTTP_RETRIES": "0",
            "PIP_INDEX_URL": self.url + "/simple/",
            "PIP_EXTRA_INDEX_URL": "",
            "PIP_RETRIES": "0",
            "PIP_TRUSTED_HOST": str(urlsplit(self.url).hostname),
            "no_proxy": str(urlsplit(self.url).hostname),
        }


@contextmanager
def serving(listener: socket.socket | None = None) -> Iterator[Registry]:
    """Serve on a free port of ours, or on a listening socket, of another network's loopback, say."""
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.hits.append(self.path)
            registry.asked.set()
            registry.gate.wait(30)
            found = registry.files.get(self.path.split("?")[0])
            kind, body = found or ("text/plain", b"not found")
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_args: object) -> None:
            pass  # a client that was killed on purpose

    with Server(("127.0.0.1", 0), Handler, bind_and_activate=listener is None) as server:
        if listener is not None:
            server.socket.close()
            server.socket = listener
        address, port = server.socket.getsockname()
        registry.url = f"http://{address}:{port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield registry
        finally:
            registry.gate.set()
            server.shutdown()
            thread.join()


def _tar(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def _zip(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            # As in a real wheel: what begins as a script does may be run.
            entry.external_attr = (0o100755 if text.startswith("#!") else 0o100644) << 16
            archive.writestr(entry, text)
    return buffer.getvalue()
