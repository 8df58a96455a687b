"""Whether and how spans are exported: host.toml, then the variables that OpenTelemetry has for it.

What the variables may say and is not done here is named, with its variable and never its value where
that may be a secret.
"""

import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.config.problem import Loc, Problem
from autobot_mcp_bridge.model.host import Tracing
from autobot_mcp_bridge.model.urls import is_safe_url

PATH = "/v1/traces"
SERVICE = "mcp-bridge"
# A file of this name among the proxy's credentials has what OTEL_EXPORTER_OTLP_HEADERS would say.
CREDENTIAL = "otlp-headers"
# Milliseconds for one request, and for which a span waits for others.
TIMEOUT_MS, DELAY_MS = 10_000, 1_000
LONGEST_MS = 60_000
_TIMEOUTS = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
MOST_ATTRIBUTES, LONGEST = 64, 256
_URL = "allowed is a URL with http or https, without user, query or fragment"
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PREFIXES = ("OTEL_EXPORTER_OTLP_", "OTEL_TRACES_", "OTEL_BSP_")
_OTHER_SIGNALS = ("OTEL_EXPORTER_OTLP_METRICS_", "OTEL_EXPORTER_OTLP_LOGS_")
# Sampler to whether it goes by the caller's decision, and the share of its own (None: the argument).
SAMPLERS: dict[str, tuple[bool, float | None]] = {
    "always_on": (False, 1.0),
    "always_off": (False, 0.0),
    "traceidratio": (False, None),
    "parentbased_always_on": (True, 1.0),
    "parentbased_always_off": (True, 0.0),
    "parentbased_traceidratio": (True, None),
}
# Variables of which one value alone is done.
_ONLY = {
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
    "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
}


@dataclass(frozen=True, slots=True)
class TraceExport:
    """Where spans go.

    Attributes:
        url: of the collector, with its path.
        headers: sent with them; secrets.
        ratio: of the calls without a caller's decision, the share that is traced; 0 to 1.
        follows: whether a caller's decision counts.
        resource: what is told of this proxy.
        timeout: seconds for one request.
        delay: seconds for which a span waits for others.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)
    ratio: float
    follows: bool
    resource: Mapping[str, str]
    timeout: float
    delay: float

    @property
    def shown(self) -> str:
        """The collector, without a path, in which some have a key."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"


def tracing_relations(tracing: Tracing) -> Iterator[tuple[Loc, object, str]]:
    """What cannot work of [tracing]: place, value, clause."""
    if tracing.endpoint is not None and not _is_endpoint(tracing.endpoint):
        yield ("tracing", "endpoint"), None, _URL
    if tracing.service_name is not None and len(tracing.service_name) > LONGEST:
        yield ("tracing", "service_name"), None, f"allowed are {LONGEST} characters"


def trace_export(
    tracing: Tracing, environ: Mapping[str, str]
) -> tuple[TraceExport | None, tuple[Problem, ...]]:
    """Where spans go, None: nowhere; and what of the variables cannot be done. Reads a credential.

    With a problem spans go nowhere: whoever asked for something else should not get half of it.
    """
    reading = _Reading(environ)
    url = reading.url(tracing.endpoint)
    if url is None:
        return None, tuple(reading.problems)
    headers, place = reading.headers()
    if headers and not is_safe_url(url):
        reading.wrong(place, "headers are a secret; allowed is https, or http to this machine")
    follows, ratio = reading.sampler()
    timeout = reading.seconds(TIMEOUT_MS, *_TIMEOUTS)
    delay = reading.seconds(DELAY_MS, "OTEL_BSP_SCHEDULE_DELAY")
    reading.others()
    resource = reading.resource(tracing.service_name)
    if tracing.ratio is not None:
        follows, ratio = True, tracing.ratio
    if reading.problems:
        return None, tuple(reading.problems)
    return TraceExport(url, headers, ratio, follows, resource, timeout, delay), ()


def _is_endpoint(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # a port that is none raises
    except ValueError:
        return False
    plain = url.isprintable() and not set(" ?#") & set(url) and "@" not in parts.netloc
    return bool(host) and plain and parts.scheme in ("http", "https")


class _Reading:
    """One look at the variables; what is wrong with them is kept in `problems`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        # An empty variable is as if it were not there (OpenTelemetry, Environment Variables).
        self._environ = {name: value for name, value in environ.items() if value}
        self._read: set[str] = set()
        self.problems: list[Problem] = []

    def wrong(self, name: str, clause: str) -> None:
        self.problems.append(Problem("environment", name, "", clause))

    def _one(self, *names: str) -> tuple[str, str]:
        """The first of these variables that is set, and what it says; both "" if none is."""
        self._read.update(names)
        return next(
            ((name, self._environ[name]) for name in names if name in self._environ), ("",) * 2
        )

    def url(self, configured: str | None) -> str | None:
        name, text = self._one("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
        if self._environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
            return None
        if self._one("OTEL_TRACES_EXPORTER")[1] == "none":
            return None
        if configured is not None:
            return configured.rstrip("/") + PATH
        if not text:
            return None
        if not _is_endpoint(text):
            self.wrong(name, _URL)
            return None
        return text if name.endswith("_TRACES_ENDPOINT") else text.rstrip("/") + PATH

    def headers(self) -> tuple[dict[str, str], str]:
        """The headers, and where they stand."""
        name, text = self._one("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
        folder = self._environ.get("CREDENTIALS_DIRECTORY")
        if folder is not None and (file := Path(folder, CREDENTIAL)).is_file():
            name, text = f"credential {CREDENTIAL}", file.read_text(encoding="utf-8").strip()
        found = self._pairs(name, text)
        for key, value in found.items():
            if not _NAME.fullmatch(key) or not value.isascii() or not value.isprintable():
                self.wrong(name, "allowed is NAME=VALUE, with commas between, as headers of HTTP")
                return {}, name
        return found, name

    def sampler(self) -> tuple[bool, float]:
        name, text = self._one("OTEL_TRACES_SAMPLER")
        argument, share = self._one("OTEL_TRACES_SAMPLER_ARG")
        known = SAMPLERS.get(text or "parentbased_always_on")
        if known is None:
            self.wrong(name, f"allowed are {', '.join(SAMPLERS)}")
            return True, 1.0
        follows, ratio = known
        if ratio is not None:
            return follows, ratio
        try:
            ratio = float(share or "1")
        except ValueError:
            ratio = -1.0
        if not 0 <= ratio <= 1:
            self.wrong(argument, "allowed is a number from 0 to 1")
        return follows, ratio

    def resource(self, configured: str | None) -> dict[str, str]:
        name, text = self._one("OTEL_RESOURCE_ATTRIBUTES")
        found = self._pairs(name, text)
        if len(found) > MOST_ATTRIBUTES or any(len(it) > LONGEST for it in found.values()):
            clause = f"allowed are {MOST_ATTRIBUTES} attributes of {LONGEST} characters"
            self.wrong(name, clause)
        service = configured or self._one("OTEL_SERVICE_NAME")[1] or found.get("service.name")
        own = {"service.version": __version__, "host.name": socket.gethostname()}
        return {**own, **found, "service.name": (service or SERVICE)[:LONGEST]}

    def seconds(self, default: int, *names: str) -> float:
        """Of milliseconds, as these variables have them."""
        name, text = self._one(*names)
        if text and not (text.isdecimal() and 1 <= int(text[:9]) <= LONGEST_MS):
            self.wrong(name, f"allowed are 1 to {LONGEST_MS} milliseconds")
            text = ""
        return int(text or default) / 1000

    def others(self) -> None:
        """What is asked for and not done, variable by variable."""
        for name, only in _ONLY.items():
            for each in (name.replace("OTLP_", "OTLP_TRACES_"), name):
                if self._one(each)[1] not in ("", only):
                    self.wrong(each, f"allowed is {only}")
        if self._one("OTEL_TRACES_EXPORTER")[1] not in ("", "otlp"):
            self.wrong("OTEL_TRACES_EXPORTER", "allowed are otlp and none")
        kinds = set(self._one("OTEL_PROPAGATORS")[1].replace(" ", "").split(","))
        if not kinds <= {"", "tracecontext", "baggage"}:
            self.wrong("OTEL_PROPAGATORS", "allowed are tracecontext and baggage")
        for name in sorted(self._environ):
            asks = name.startswith(_PREFIXES) and not name.startswith(_OTHER_SIGNALS)
            if asks and name not in self._read:
                self.wrong(name, "is not supported; allowed is to leave it out")

    def _pairs(self, name: str, text: str) -> dict[str, str]:
        """`key=value,key=value`, the values percent-encoded (the form of W3C Baggage)."""
        found = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            key, equals, value = part.partition("=")
            if not key.strip() or not equals:
                self.wrong(name, "allowed is NAME=VALUE, with commas between")
                return {}
            found[key.strip()] = unquote(value.strip())
        return found
