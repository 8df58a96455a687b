"""One entry of a client's file, read whole: every key of it is taken, or left out with a reason."""

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from autobot_mcp_bridge.connect.imported import keys, remote, variables, words
from autobot_mcp_bridge.connect.imported.draft import Draft
from autobot_mcp_bridge.connect.imported.launchers import SSE, Launch, understood
from autobot_mcp_bridge.connect.imported.placeholders import Answers
from autobot_mcp_bridge.connect.imported.shapes import Raw

_URLS = ("url", "serverUrl", "httpUrl", "uri")
_HEADERS = ("headers", "http_headers", "httpHeaders")
_COMMANDS = ("command", "cmd")
_TRANSPORTS = ("type", "transport", "transportType")
_HOME = re.compile(r"/(?:home|root|run/user)(?:/|$)")  # ProtectHome= (systemd.exec(5))
_WINDOWS = re.compile(r"[A-Za-z]:[\\/][^/]")
_PATH = re.compile(r"/[^:\0\n]+")
_STARTS = {*_COMMANDS, *_URLS}
_STDIO = frozenset({"stdio", "local", ""})
_HTTP = frozenset({"http", "https", "streamablehttp", "streamable", "remote"})
_OWN = frozenset({"builtin", "platform", "frontend", "inlinepython", "sdk", "inprocess"})


def draft_of(raw: Raw, given: Mapping[str, str]) -> Draft:
    """What the entry becomes; never raises on what stands in it.

    Args:
        raw: the entry.
        given: what a person says for placeholders, by name.
    """
    draft = Draft(raw.name, raw.where, off=raw.off)
    if not isinstance(raw.data, Mapping):
        draft.skip("allowed is an object with command or url")
        return draft
    data = _flat(raw.data)
    answers = Answers(given, raw.inputs)
    if data.get("config", "") is None:
        draft.became["config"] = "the entry itself"
    if data.get("name") == raw.name:
        draft.became["name"] = "its name"
    _take_state(draft, data)
    kind = _take_transport(draft, data)
    if kind is not None:
        _take_start(draft, data, answers, kind)
    keys.take_rest(draft, data)
    return draft


def _flat(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entry with its command in a text and a list, as most have it."""
    match data:
        case {"command": {"path": program, **rest}, **others}:  # Zed
            own = {key: rest[key] for key in ("args", "env") if rest.get(key)}
            return {**others, **own, "command": program}
        case {"command": [program, *args], **others} if not others.get("args"):  # opencode
            return {**others, "command": program, "args": args}
        case {"config": Mapping() as inner, **others} if not _STARTS & data.keys():  # Goose, of old
            return {**others, **dict(inner), "config": None}
    return data


def _take_state(draft: Draft, data: Mapping[str, Any]) -> None:
    for key, off in (("disabled", True), ("enabled", False), ("isActive", False)):
        if key in data:
            if not isinstance(data[key], bool):
                draft.skip(f"{key}: allowed is true or false")
            elif data[key] is off:
                draft.off = "the file has it disabled"
            draft.became[key] = "enabled"


def _take_transport(draft: Draft, data: Mapping[str, Any]) -> str | None:
    """`stdio` or `http`; None where neither can be had."""
    has_command = any(key in data for key in _COMMANDS)
    urls = [key for key in _URLS if key in data]
    kind = "http" if urls and not has_command else "stdio"
    for key in _TRANSPORTS:
        if key not in data:
            continue
        said = data[key]
        draft.became[key] = "whether it has a command or a url"
        word = "".join(c for c in said.lower() if c.isalnum()) if isinstance(said, str) else None
        if word in _OWN:
            draft.skip(f"it is a part of the client itself ({said})")
        elif word == "sse":
            draft.skip(SSE)
        elif word not in _STDIO | _HTTP:
            draft.skip(f"{key}: allowed is stdio or http")
        elif (word in _HTTP) is not (kind == "http"):
            draft.skip(f"{key}: it says {said}, and the rest is for something else")
    if not has_command and not urls:
        draft.skip("it has neither command nor url")
    elif has_command and urls:
        draft.skip(f"it has both command and {urls[0]}")
    return None if draft.skipped else kind


def _take_start(draft: Draft, data: Mapping[str, Any], answers: Answers, kind: str) -> None:
    env = next((key for key in ("env", "envs", "environment") if key in data), None)
    if kind == "http":
        _take_upstream(draft, data, answers, env)
        return
    launch = _launch(draft, data)
    if launch is None or launch.cannot:
        draft.skip(launch.cannot if launch else "")
        return
    draft.notes += launch.notes
    own = data.get(env) if env else None
    if launch.url is not None:
        # mcp-remote puts its own variables into its headers.
        beside = {k: t for k, v in _items(own) if (t := _settled(v, answers)) is not None}
        remote.take_url(draft, "args", launch.url, answers)
        remote.take_header_words(draft, launch.headers, answers.beside(beside))
        if env:
            draft.became[env] = "headers"
            for name, _ in _items(own):
                draft.became[f"{env}.{name}"] = "what the headers have of it"
        return
    if env:
        variables.take(draft, env, own, answers)
    variables.take_each(draft, "args", launch.env, answers)
    for key in ("env_vars", "env_keys"):
        if key in data:
            variables.take_names(draft, key, data[key])
    variables.take_names(draft, "args", [n for n in launch.passed if n not in _keys(own)])
    words.take(draft, launch.words, answers)
    if launch.profile:
        draft.settings["profile"] = launch.profile
    _take_directory(draft, data, answers)
    _take_env_file(draft, data)
    _note_surroundings(draft)


def _note_surroundings(draft: Draft) -> None:
    """Say what a command speaks of that is not here, or is hidden in the sandbox."""
    if PurePosixPath(draft.command[0]).name == "uv":
        draft.notes.append(
            "uv makes an environment at each start: it needs network.mode internet, and paths.write "
            "for where it stands; what is on PyPI starts offline with uvx"
        )
    for text in (*draft.command[1:], *draft.env.values()):
        if _WINDOWS.match(text):
            draft.notes.append(f"{text} is a path of Windows")
        elif _PATH.fullmatch(text) and not _exists(text):
            draft.notes.append(f"{text} is not on this host")
        elif _HOME.match(text):
            draft.notes.append(f"{text} is hidden from it; paths.read and paths.write show it")


def _settled(value: Any, answers: Answers) -> str | None:
    """A variable's text, where it is whole."""
    text = variables.as_text(value)
    resolved = None if text is None else answers.resolve(text)
    return None if resolved is None or resolved.missing else resolved.text


def _launch(draft: Draft, data: Mapping[str, Any]) -> Launch | None:
    """The command in words of this product; None, and a reason, where it is no command."""
    key = next(key for key in _COMMANDS if key in data)
    command, args = data[key], data.get("args") or []
    texts = [variables.as_text(word) for word in args] if isinstance(args, list) else [None]
    if not isinstance(command, str) or not command or None in texts:
        draft.skip(f"{key}, args: allowed is a text, and a list of texts")
        return None
    draft.became[key] = "command"
    if "args" in data:
        draft.became["args"] = "command"
    return understood(command, [text for text in texts if text is not None])


def _take_upstream(
    draft: Draft, data: Mapping[str, Any], answers: Answers, env: str | None
) -> None:
    urls = [key for key in _URLS if key in data]
    # Gemini CLI takes `url` for SSE and `httpUrl` for streamable HTTP, where it has both.
    first = "httpUrl" if "httpUrl" in urls else urls[0]
    for key in urls:
        if key != first:
            draft.left_out[key] = f"{first} says it"
    remote.take_url(draft, first, data[first], answers)
    for key in _HEADERS:
        if key in data:
            remote.take_headers(draft, key, data[key], answers)
    nested = data.get("requestOptions")
    if isinstance(nested, Mapping) and "headers" in nested:  # Continue
        remote.take_headers(draft, "requestOptions", nested["headers"], answers)
    if "env_http_headers" in data:
        remote.take_named_headers(draft, "env_http_headers", data["env_http_headers"])
    if "bearer_token_env_var" in data:
        remote.take_bearer(draft, "bearer_token_env_var", data["bearer_token_env_var"])
    for key in ("bearer_token", "apiKey"):
        if isinstance(token := data.get(key), str):
            remote.take_header(draft, key, "Authorization", f"Bearer {token}", answers)
    if env:
        draft.left_out[env] = "an upstream has its own variables"
    for key in ("args", "cwd"):
        if key in data:
            draft.left_out[key] = "an upstream has no command"


def _take_directory(draft: Draft, data: Mapping[str, Any], answers: Answers) -> None:
    cwd = next((key for key in ("cwd", "working_directory", "workingDirectory") if key in data), "")
    if not cwd or data[cwd] in (None, ""):
        if cwd:
            draft.left_out[cwd] = "it is empty"
        if draft.command[:1] and _is_relative(draft.command[0]):
            draft.skip("command: its program is a relative path, and there is no cwd")
        return
    resolved = answers.resolve(data[cwd]) if isinstance(data[cwd], str) else None
    if resolved is None or resolved.missing or not resolved.text.startswith("/"):
        draft.left_out[cwd] = "allowed is an absolute path"
        draft.to_do.append(f"its {cwd} is not an absolute path; give it one as cwd")
        return
    if _is_relative(draft.command[0]):
        draft.command[0] = str(PurePosixPath(resolved.text, draft.command[0]))
    if not _is_directory(resolved.text):
        draft.left_out[cwd] = "there is no such directory on this host"
        draft.to_do.append(f"its {cwd} is not on this host; make the directory, and give it as cwd")
        return
    draft.settings["cwd"] = resolved.text
    draft.became[cwd] = "cwd"


def _is_directory(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _is_relative(program: str) -> bool:
    return "/" in program and not program.startswith("/")


def _take_env_file(draft: Draft, data: Mapping[str, Any]) -> None:
    for key in ("envFile", "env_file"):
        if data.get(key):
            draft.left_out[key] = "the file is not read: what is a secret in it, you know"
            draft.to_do.append(
                f"the variables of its {key} are not here: give each as env, or as credentials "
                "after mcp-bridge secret set NAME"
            )


def _items(found: Any) -> list[tuple[str, Any]]:
    return list(found.items()) if isinstance(found, Mapping) else []


def _keys(found: Any) -> frozenset[str]:
    return frozenset(found) if isinstance(found, Mapping) else frozenset()
