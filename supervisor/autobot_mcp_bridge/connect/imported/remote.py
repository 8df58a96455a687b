"""An upstream: its URL and headers, and the secrets in them."""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from autobot_mcp_bridge.connect.imported.draft import Draft, Secret
from autobot_mcp_bridge.connect.imported.launchers import SSE
from autobot_mcp_bridge.connect.imported.placeholders import Answers, shown
from autobot_mcp_bridge.connect.imported.secrecy import (
    holds_secret,
    is_secret,
    is_stand_in,
    looks_random,
    names_a_secret,
)
from autobot_mcp_bridge.connect.imported.variables import as_text
from autobot_mcp_bridge.connect.imported.words import header_of

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 section 5.6.2
_SCHEME = re.compile(r"((?:Bearer|Basic|Token)[ \t]+)(\S.*)", re.IGNORECASE | re.DOTALL)
# What the proxy says itself, of the connection or of MCP.
_TAKEN = frozenset(
    [
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
_AUTHORIZATION = "Authorization"
_NO_TEXT = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def take_url(draft: Draft, key: str, found: Any, answers: Answers) -> None:
    """Take the upstream's URL, without what is secret in it."""
    text = as_text(found)
    if not text:
        draft.skip(f"{key}: allowed is a URL")
        return
    resolved = answers.resolve(text)
    if resolved.missing:
        # Not even disabled: a URL with a hole in it is none.
        draft.skip(
            f"{key}: nobody has said what {shown(resolved.missing)} is; import again with "
            + " ".join(f"--set {each.name}=VALUE" for each in resolved.missing)
        )
        return
    try:
        parts = urlsplit(resolved.text.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        draft.skip(f"{key}: it is no URL")
        return
    if parts.scheme not in {"http", "https"} or not host:
        draft.skip(f"{key}: allowed is a URL of http or https")
        return
    if parts.path.rstrip("/").endswith("/sse"):
        draft.skip(SSE)
        return
    if any(looks_random(part) or holds_secret(part) for part in unquote(parts.path).split("/")):
        draft.skip(
            f"{key}: its path is a secret, and a URL stands in the configuration, where everybody "
            "reads it; ask whoever runs it for a token that goes into a header"
        )
        return
    if parts.username or parts.password:
        pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        value = base64.b64encode(pair.encode()).decode()  # RFC 7617
        draft.keep_secret(Secret(_AUTHORIZATION, value, header=True, prefix="Basic "))
        draft.notes.append(f"user and password of {key} go into the header {_AUTHORIZATION}")
    address = f"[{host}]" if ":" in host else host
    address = address if port is None else f"{address}:{port}"
    query = _query(draft, key, parse_qsl(parts.query, keep_blank_values=True), parts.query)
    if parts.fragment:
        draft.notes.append(f"the fragment of {key} is left out: no server ever gets it (RFC 9110)")
    draft.url = urlunsplit((parts.scheme, address, parts.path, query, ""))
    draft.became[key] = "url"


def _query(draft: Draft, key: str, pairs: list[tuple[str, str]], whole: str) -> str:
    # `?TOKEN` is a name without a value.
    kept = [(name, value) for name, value in pairs if not is_secret(name, value or name)]
    if len(kept) == len(pairs) and (pairs or not is_secret("", whole)):
        return whole
    names = [name for name, value in pairs if value and (name, value) not in kept]
    names = names or ["a part without a name"]
    draft.left_out[f"{key}?{names[0]}"] = "a secret, which a URL in the configuration cannot keep"
    draft.to_do.append(
        f"{' and '.join(names)} in its URL was a secret and is left out: give it in a header, if "
        "the upstream takes one (headers: {NAME: {credential: SECRET}})"
    )
    return urlencode(kept)


def take_headers(draft: Draft, key: str, found: Any, answers: Answers) -> None:
    """Take the headers of one key: texts, or credentials."""
    if found is None:
        draft.left_out[key] = "it is empty"
        return
    if not isinstance(found, Mapping):
        draft.skip(f"{key}: allowed is an object of texts")
        return
    draft.became[key] = "headers" if found else "nothing, it is empty"
    for name, value in found.items():
        text = as_text(value)
        if text is None:
            draft.skip(f"{key}.{name}: allowed is a text")
        else:
            take_header(draft, f"{key}.{name}", name, text, answers)


def take_header_words(draft: Draft, words: Iterable[str], answers: Answers) -> None:
    """Take headers as they stand in a command, `Name: value`."""
    for word in words:
        if pair := header_of(word):
            take_header(draft, f"args.{pair[0]}", *pair, answers)
        else:
            draft.skip("args: allowed is --header 'Name: value'")


def take_header(draft: Draft, place: str, name: str, text: str, answers: Answers) -> None:
    if name.lower() in _TAKEN or name.lower().startswith("mcp-"):
        draft.left_out[place] = "the proxy sends that header itself"
        return
    resolved = answers.resolve(text)
    if not _TOKEN.fullmatch(name) or _NO_TEXT.search(resolved.text.strip()):
        draft.left_out[place] = "no header can have that name or hold that value (RFC 9110)"
        draft.to_do.append(f"{place} could not be taken: say it to the upstream in another way")
        return
    value, prefix = resolved.text.strip(), ""
    if match := _SCHEME.fullmatch(value):
        prefix, value = f"{match[1].strip()} ", match[2]
    secret = bool(prefix) or resolved.secret or is_secret(name, value)
    if resolved.missing and not (secret or names_a_secret(name)):
        missing = shown(resolved.missing)
        draft.left_out[place] = f"nobody has said what {missing} is"
        draft.to_do.extend(
            f"import again with --set {each.name}=VALUE, for {place}" for each in resolved.missing
        )
        return
    if not secret and not resolved.missing:
        draft.headers[name] = value
        draft.became[place] = f"headers.{name}"
        return
    hint = f"{shown(resolved.missing)} of the file" if resolved.missing else ""
    if not hint and is_stand_in(value):
        hint = "the file has none yet"
    kept = Secret(name, None if hint else value, header=True, prefix=prefix, hint=hint)
    if any(each.header and each.label.lower() == name.lower() for each in draft.secrets):
        draft.left_out[place] = f"the header {name} has another value already"
        return
    draft.keep_secret(kept)
    draft.became[place] = f"headers.{name}"


def take_named_headers(draft: Draft, key: str, found: Any) -> None:
    """Take Codex' headers whose values are those of variables of the client's."""
    if not isinstance(found, Mapping) or not all(isinstance(v, str) for v in found.values()):
        draft.skip(f"{key}: allowed is an object of names of variables")
        return
    draft.became[key] = "headers"
    for name, variable in found.items():
        hint = f"the variable {variable} of the client"
        draft.keep_secret(Secret(name, None, header=True, hint=hint))
        draft.became[f"{key}.{name}"] = f"headers.{name}"


def take_bearer(draft: Draft, key: str, variable: Any) -> None:
    """Take the name of the variable that holds a bearer token."""
    if not isinstance(variable, str):
        draft.skip(f"{key}: allowed is the name of a variable")
        return
    hint = f"the variable {variable} of the client"
    draft.keep_secret(Secret(_AUTHORIZATION, None, header=True, prefix="Bearer ", hint=hint))
    draft.became[key] = f"headers.{_AUTHORIZATION}"
