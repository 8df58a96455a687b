"""What the bridge promises: id, sentence, source. `make trace` shows the test of each.

NV-* are the behaviours of the host that this project replaces. S* are what has gone wrong in other
projects that run servers as units. The other letters are the protocol's:
A plain HTTP, B sessions, C streams, D routing, E revision 2026-07-28, F tokens, G eras of client and
server, H the stdio side.
"25" is the MCP specification of 2025-11-25, "26" that of 2026-07-28; "own" is a decision of ours
where the texts are silent, recorded in DECISIONS.md or ARCHITECTURE.md.
A test claims an id with `@pytest.mark.requirement("NV-01")`; one test may claim several.
"""

from dataclasses import dataclass

_TRANSPORT_25 = "25 basic/transports"
_TRANSPORT_26 = "26 basic/transports/streamable-http"
_LISTEN = "26 basic/patterns/subscriptions"


@dataclass(frozen=True, slots=True)
class Requirement:
    id: str
    says: str
    source: str


REQUIREMENTS = (
    Requirement("NV-01", "each hosted stdio server is one child process", "NV-01"),
    Requirement("NV-02", "a server is started without a shell", "NV-02"),
    Requirement("NV-03", "a server inherits nothing from the host's environment", "NV-03"),
    Requirement("NV-04", "a server works in <state>/<tenant>/<project>/<name>, mode 0700", "NV-04"),
    Requirement("NV-05", "memory, open files and core dumps of a server are limited", "NV-05"),
    Requirement("NV-06", "a server without activity is stopped", "NV-06"),
    Requirement(
        "NV-07", "a crashed server is restarted; after more than 5 crashes a minute not", "NV-07"
    ),
    Requirement("NV-08", "HTTP is served by aiohttp", "NV-08, overridden: was stdlib only"),
    Requirement("NV-09", "a server's URL is /t/{tenant}/p/{project}/s/{name}/mcp", "NV-09"),
    Requirement("NV-10", "each server has its token; only its sha256 is stored", "NV-10"),
    Requirement(
        "NV-11", "a token of elsewhere gets the same 401 as for an unknown server", "NV-11"
    ),
    Requirement("NV-12", "the tool allow-list holds for listing and for calling", "NV-12"),
    Requirement("NV-13", "/healthz and Prometheus /metrics are served", "NV-13"),
    Requirement("NV-14", "servers.json is read again without a restart", "NV-14"),
    Requirement(
        "NV-15", "a service; simple or replicated: a server is on one host, by its name", "NV-15"
    ),
    Requirement("NV-16", "that npx and uvx are there is looked at before a change", "NV-16"),
    Requirement(
        "SM-08", "a token is compared by its digest, before anything is done", "SM-08, part"
    ),
    Requirement("SM-09", "five 401 within a minute are told once in five minutes", "SM-09"),
    Requirement("SM-10", "a session's name in the records is not its id", "SM-10"),
    Requirement("SM-79", "each call has one line, with the document's fields", "SM-79"),
    Requirement("SM-80", "records and log are two streams, neither on stdout", "SM-80"),
    Requirement("SM-81", "secrets are redacted by key, long texts cut, bytes counted", "SM-81"),
    Requirement("SM-82", "secrets are redacted by pattern and by value", "SM-82"),
    Requirement("SM-83", "all log records are redacted, tracebacks included", "SM-83"),
    Requirement("SM-84", "records are for their owner only, and files are turned over", "SM-84"),
    Requirement("NV-24", "a project's server is listed and called from that project only", "NV-24"),
    Requirement(
        "NV-25", "from another project: mcp_server_project_mismatch, and no upstream call", "NV-25"
    ),
    Requirement(
        "NV-26", "from another project the routes of /v1 about a server answer 403", "NV-26"
    ),
    Requirement("NV-27", "every refusal is taken note of", "NV-27"),
    Requirement("NV-28", "a server without a project is shared by its tenant", "NV-28"),
    Requirement(
        "NV-29", "tenant_admin and security_officer without a project see all projects", "NV-29"
    ),
    Requirement("NV-30", "no secret is told again once it was printed", "NV-30, for API keys"),
    Requirement(
        "SM-01", "agent id and type match their patterns whole; both missing: one error", "SM-01"
    ),
    Requirement("AB-39", "each server is an instance of one template unit", "AB-39"),
    Requirement("AB-40", "the template is hardened at least as AutoBot's is", "AB-40"),
    Requirement("AB-41", "processor, memory, tasks and open files are limited", "AB-41"),
    Requirement(
        "AB-42", "variables, secrets and log of a unit are its own", "AB-42, without env files"
    ),
    Requirement("AB-43", "AutoBot's variables map to documented keys", "AB-43, own names"),
    Requirement("AB-44", "AutoBot's sizes of servers can be configured", "AB-44, as units"),
    Requirement(
        "AB-45", "log lines that tell of isolation can be found by one word", "AB-45, own field"
    ),
    Requirement(
        "AB-46",
        "starts, openings of the breaker, uptime and time between crashes of each server are told",
        "AB-46, under own names",
    ),
    Requirement(
        "AB-47",
        "use and limits of each unit's cgroup are told, limits of others than ours, and what "
        "cannot be read",
        "AB-47, under own names",
    ),
    Requirement(
        "SM-07", "a stdio server is what a client that knows only stdio gets", "SM-07, stdio"
    ),
    Requirement(
        "S12",
        "the end of a server or its helper for memory is the server's, and told as such",
        "jupyterhub/systemdspawner#101",
    ),
    Requirement(
        "SM-12", "${VAR} in a manifest is expanded, all missing names told at once", "SM-12"
    ),
    Requirement(
        "SM-13", "a manifest of scoped-mcp's format loads, or names what is not here", "SM-13"
    ),
    Requirement("SM-14", "modules of a manifest are servers, with a mode", "SM-14, read by hint"),
    Requirement("SM-18", "a manifest's rate limits: global and by tool", "SM-18"),
    Requirement("SM-19", "argument filters: fields, block or warn, decoding", "SM-19"),
    Requirement("SM-20", "response filters: block, warn or redact, decoding", "SM-20"),
    Requirement("SM-24", "a pattern that can match no tool is told", "SM-24"),
    Requirement(
        "SM-25", "a manifest's servers show the tools that their mode lets through", "SM-25"
    ),
    Requirement("SM-35", "no call reaches a server unless its scopes have been asked", "SM-35"),
    Requirement("SM-36", "paths stay below the agent's directory", "SM-36, no link is followed"),
    Requirement("SM-37", "namespaces, and custom strategies", "SM-37, without sqlite files"),
    Requirement("SM-38", "agents of one type and the same tools never meet", "SM-38"),
    Requirement(
        "SM-49", "arguments are validated against inputSchema before they are sent", "SM-49"
    ),
    Requirement("SM-53", "binary blocks above a cap become a stub, the others stay", "SM-53"),
    Requirement(
        "SM-55", "pre-call hooks in their order may change arguments or stop a call", "SM-55"
    ),
    Requirement(
        "SM-56", "one order of steps, tested pair by pair", "SM-56, hooks and schema first"
    ),
    Requirement("SM-57", "sliding windows; what cannot be counted is not let through", "SM-57"),
    Requirement("SM-58", "the error of an argument filter names neither rule nor field", "SM-58"),
    Requirement("SM-59", "every text of an answer is looked at, blobs of text included", "SM-59"),
    Requirement("SM-F1", "what tools say of themselves reaches clients value for value", "SM-F1"),
    Requirement("SM-F2", "both schemas of a tool reach clients value for value", "SM-F2"),
    Requirement("SM-F4", "a server's errors go through the response filters", "SM-F4"),
    Requirement(
        "SM-F8", "no variable changes a manifest's structure, none in a comment counts", "SM-F8"
    ),
    Requirement(
        "SM-F9", "a mistake in a manifest is told by path and rule, without values", "SM-F9"
    ),
    Requirement("SM-F10", "what lies at a scoped path, such as a FIFO, holds up nobody", "SM-F10"),
    Requirement("SM-F11", "what hooks change is validated", "SM-F11"),
    Requirement("SM-F14", "a call counts in all of its windows or in none", "SM-F14"),
    Requirement("SM-F17", "a changed manifest counts without a restart", "SM-F17"),
    Requirement("SM-F23", "what stands beside a binary block stays", "SM-F23"),
    Requirement("A1", "a server has one path ending in /mcp, which takes POST", _TRANSPORT_25),
    Requirement("A2", "any other method is 405 with Allow", "RFC 9110 15.5.6"),
    Requirement("A3", "an Origin that is not allowed is 403, none is accepted", _TRANSPORT_26),
    Requirement("A4", "a Host that is not configured is 421", "25 security best practices"),
    Requirement("A5", "only loopback is listened on, unless told otherwise", _TRANSPORT_26),
    Requirement("A6", "Host, Origin, then route and token come before anything else", "own"),
    Requirement("A7", "a POST that is not application/json is 415", "own"),
    Requirement("A8", "an Accept that allows no answer form is 406; wildcards count", "own"),
    Requirement("A9", "a GET that does not accept an event stream is 406", "own"),
    Requirement(
        "A10", "a body that is not JSON is 400 with -32700 and id null", "JSON-RPC 2.0 5.1"
    ),
    Requirement(
        "A11", "an array as body is 400 with -32600 since 2025-06-18", "2025-06-18 changelog"
    ),
    Requirement("A12", "an array in a 2025-03-26 session is answered or refused whole", "own"),
    Requirement("A13", "a body above the cap is 413, headers above theirs 431", "own"),
    Requirement("A14", "an accepted notification or response is 202 without a body", _TRANSPORT_25),
    Requirement("A15", "a request is answered by one JSON object or by a stream", _TRANSPORT_25),
    Requirement("A16", "the answer has the request's id, in value and type", "25 basic/index"),
    Requirement("A17", "streams are unbuffered, uncached and never silent for long", _TRANSPORT_26),
    Requirement("A18", "a server's JSON-RPC error rides on HTTP 200 at the handshake", "own"),
    Requirement("A19", "every text arrives unchanged, whatever its characters", _TRANSPORT_25),
    Requirement("B1", "initialize makes a session with an unguessable id", _TRANSPORT_25),
    Requirement(
        "B2", "initialize is answered from what the server offers, nothing invented", "own"
    ),
    Requirement("B3", "a request without a session id is 400", _TRANSPORT_25),
    Requirement("B4", "an unknown or ended session id is 404 on every method", _TRANSPORT_25),
    Requirement("B5", "a session id is no credential and is unknown to another token", "own"),
    Requirement("B6", "DELETE ends a session and its streams", _TRANSPORT_25),
    Requirement("B7", "idle sessions end, and their number is capped", "own"),
    Requirement("B8", "initialize in a live session is 400 with -32600", "own"),
    Requirement("B9", "an unsupported MCP-Protocol-Version is 400", _TRANSPORT_25),
    Requirement("B10", "without a version header the negotiated version counts", _TRANSPORT_25),
    Requirement("B11", "a server that dies in initialize leaves no session", "own"),
    Requirement("B12", "initialize cannot be cancelled", "25 basic/utilities/cancellation"),
    Requirement("B13", "an isolated session has a process of its own, a shared one has not", "own"),
    Requirement("C1", "what belongs to a request comes before its answer", _TRANSPORT_25),
    Requirement("C2", "a server's message goes out on exactly one stream", _TRANSPORT_25),
    Requirement("C3", "a GET stream carries only answers of a stream it resumes", _TRANSPORT_25),
    Requirement("C4", "a second GET stream of a session is 409", "own"),
    Requirement("C5", "a notification without a request waits, bounded, for a stream", "own"),
    Requirement("C6", "event ids are unique in the session and name their stream", _TRANSPORT_25),
    Requirement("C7", "a stream begins with an id and no data, at 2025-11-25 only", _TRANSPORT_25),
    Requirement("C8", "Last-Event-ID replays what came later on that stream", _TRANSPORT_25),
    Requirement("C9", "an event id that is not, or no longer, known is 400", "own"),
    Requirement("C10", "a dropped stream cancels nothing; its answer is kept", _TRANSPORT_25),
    Requirement("C11", "a stream that ends before its answer says retry", _TRANSPORT_25),
    Requirement("C12", "a server's end fails its open calls at once", "own"),
    Requirement("D1", "equal ids or progress tokens of two clients never meet", "25 basic/index"),
    Requirement("D2", "a cancellation reaches only the sender's own open request", "own"),
    Requirement("D3", "a server's own request is answered, an answer to nothing dropped", "own"),
    Requirement("D4", "methods of the eras pass, others not; fields pass untouched", "own"),
    Requirement("D5", "a slow call delays no other call", "own"),
    Requirement("D6", "tasks/* reaches only the server and session that made the task", "25 tasks"),
    Requirement("D7", "trace context in _meta passes", "SEP-414"),
    Requirement("E1", "both eras work at once on one URL", "26 basic/versioning"),
    Requirement("E2", "server/discover is answered", "26 server/discover"),
    Requirement("E3", "Mcp-Method that is missing or differs is 400 with -32020", _TRANSPORT_26),
    Requirement("E4", "Mcp-Name that is missing or differs is 400 with -32020", _TRANSPORT_26),
    Requirement(
        "E5", "Mcp-Param-* that differs from its argument is 400 with -32020", _TRANSPORT_26
    ),
    Requirement("E6", "a differing version is -32020, one not served -32022", _TRANSPORT_26),
    Requirement("E7", "_meta without version or capabilities is 400 with -32602", "26 basic/index"),
    Requirement("E8", "an unknown method is 404 with -32601", _TRANSPORT_26),
    Requirement("E9", "a capability that the client lacks is 400 with -32021", _TRANSPORT_26),
    Requirement("E10", "GET and DELETE of this revision are 405", _TRANSPORT_26),
    Requirement("E11", "a session id is ignored and none is made", _TRANSPORT_26),
    Requirement("E12", "a response as body is refused, a notification is 202", _TRANSPORT_26),
    Requirement("E13", "no request of a server reaches a modern stream", _TRANSPORT_26),
    Requirement("E14", "closing the response stream cancels the call", "26 cancellation"),
    Requirement(
        "E15", "a listener hears what it asked for, under its own request id", "26 subscriptions"
    ),
    Requirement(
        "E16", "a listener gets the closing result when its server goes", "26 subscriptions"
    ),
    Requirement("E17", "progress goes to the request that owns the token", "26 progress"),
    Requirement(
        "E18", "logs come only to a request that asked, and are never guessed", "26 logging"
    ),
    Requirement(
        "E19",
        "input_required and its retry pass, with the state untouched",
        "26 basic/patterns/mrtr",
    ),
    Requirement(
        "E20", "a private result is never given to another token", "26 server/utilities/caching"
    ),
    Requirement(
        "E21", "modern requests share a process, of all or of one token", "26 statelessness"
    ),
    Requirement("E22", "a dead process fails the open calls; the next gets a new one", "26 stdio"),
    Requirement("E23", "each request is authenticated alone", "26 statelessness"),
    Requirement("F1", "401 asks for a Bearer, with invalid_token if one was sent", "RFC 6750 3"),
    Requirement("F2", "POST, GET and DELETE are all checked", "25 basic/authorization"),
    Requirement("F3", "a token in the query string does not count", "25 basic/authorization"),
    Requirement("F4", "a token reaches neither server nor log", "25 security best practices"),
    Requirement(
        "F5", "with an issuer, RFC 9728 metadata and a challenge that names it", "RFC 9728"
    ),
    Requirement("F6", "without one, 401 names no metadata, discovery paths are 404", "own"),
    Requirement("F7", "a revoked or expired token ends its sessions and streams", "own"),
    Requirement("F8", "pages of other origins only where configured, by name", "own"),
    Requirement("G1", "a server that fails server/discover is one of the handshake", "26 stdio"),
    Requirement("G2", "a process is spoken to in one era, from its first request on", "own"),
    Requirement("G3", "a modern client is served by a handshake server", "26 basic/versioning"),
    Requirement(
        "G4",
        "a handshake client of a modern server is served, or told the versions",
        "26 basic/versioning",
    ),
    Requirement("G5", "what the eras say differently is translated", "own"),
    Requirement("G6", "the versions named are those that are served", "26 server/discover"),
    Requirement("H1", "stdin carries one JSON message per line and nothing else", "25 stdio"),
    Requirement("H2", "a stdout line that is no message is dropped and counted", "25 stdio"),
    Requirement("H3", "stderr is a log and never taken for failure", "25 stdio"),
    Requirement("H4", "a stop closes stdin, waits, then SIGTERM, then SIGKILL", "26 stdio"),
    Requirement("H5", "too long a line fails one request; a full stdin is bounded", "own"),
    Requirement("H6", "a call has a deadline, at which the server is told", "25 cancellation"),
    Requirement("H7", "the framing is the same over any pair of descriptors", "26 stdio"),
    Requirement("H8", "a server's ping is answered at once", "25 ping"),
)
BY_ID = {requirement.id: requirement for requirement in REQUIREMENTS}
assert len(BY_ID) == len(REQUIREMENTS)
