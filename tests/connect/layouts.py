"""Files of clients as people and programs leave them, and what an entry makes of them."""

import json

from hypothesis import strategies as st

# Client to texts as people and clients leave them.
ODD = {
    "cursor": [
        "{}",
        "{}\n",
        "{ }",
        "{\n}\n",
        '{"mcpServers": {}}',
        '{"mcpServers":{"a":{"command":"x"}}}',
        '{\n\t"mcpServers": {\n\t\t"a": {"command": "x"}\n\t},\n\t"z": 1.0e3\n}',
        '{\r\n    "mcpServers": {\r\n        "a": { "command": "x" },\r\n    },\r\n}\r\n',
        '\ufeff{\n  "mcpServers": {\n    "a": {}\n  }\n}\n',
        '// of mine\n{\n  /* kept */ "mcpServers": { // here\n    "a": {} // last\n  } // end\n}\n//',
        '{\n  "mcpServers": {\n    "a": {}, /* one */ // two\n    // none of these\n  },\n}',
        '{"b": "\\u00e9\\/ // no comment, /* no */ comment,}", "a": [1, 2,], }',
        '{\n "mcpServers": {\n  "a": {"args": ["}", "]", "//"]}}\n}',
        '{"mcpServers": {\n  // only a comment\n}}',
        '{"mcpServers":{\n"a":null /* , */ } /* , { */ \n}',
        '\n\n  {"x": NaN_}'.replace("NaN_", "null"),
        '{\n      "mcpServers"  :  {\n\n "a"  : {} ,\n\n\n      "b":{}\n   }\n}',
    ],
    "claude-code": [
        '{"numStartups": 7, "projects": {"/p": {"history": [' + "[" * 200 + "]" * 200 + "]}}}",
        '{\n  "mcpServers": {\n    "time": {\n      "type": "stdio"\n    }\n  },\n  "n": -0.0\n}\n',
        "",
        "\n",
    ],
    "claude-desktop": ['{"globalShortcut": "", "mcpServers": {"a": {"command": "npx"}}}'],
    "windsurf": ['{"mcpServers": {"a": {"serverUrl": "https://x.example/mcp", "disabled": true}}}'],
    "gemini": ['{\n  "theme": "GitHub", // mine\n  "mcp": {"allowed": ["a"]}\n}\n'],
    "vscode": [
        '{\n\t"servers": {\n\t\t"a": {"type": "http"},\n\t},\n}',
        '{"inputs": [], "servers": {}}',
        '{\n  "inputs": [\n    {"type": "promptString", "id": "x"} // of mine\n  ],\n}\n',
    ],
    "codex": [
        'model = "gpt-5"\n',
        'model = "gpt-5" # no newline at the end',
        '# only a comment\r\nx = 1\r\n\r\n[mcp_servers.a]\r\ncommand = "x"\r\n',
        '[mcp_servers.a]\nargs = [\n  "[mcp_servers.files]", # no table\n  "#",\n]\n\n\n',
        's = """\n[mcp_servers.files]\nurl = "no"\n""" # "\nt = \'\'\'\n[x\'\'\'\n[[list]]\nn = nan\n',
        '[mcp_servers]\na = { command = "x" }\nb.command = "y"\n[projects."/p [x]"]\nt = 1979-05-27\n',
    ],
}
CORPUS = [(client, text) for client, texts in ODD.items() for text in texts]


# Before and after, with URL and OLD for the server's endpoint.
JSON_EDITS = [
    (
        '{\n\t"mcpServers": {\n\t\t"a": {} // last\n\t}\n}',
        (
            '{\n\t"mcpServers": {\n\t\t"a": {}, // last\n\t\t"files": {\n\t\t\t"url": "URL",\n'
            '\t\t\t"headers": {\n\t\t\t\t"Authorization": "Bearer ${env:MCP_BRIDGE_TOKEN_FILES}"\n'
            "\t\t\t}\n\t\t}\n\t}\n}"
        ),
    ),
    (
        '{"mcpServers":{"a":{},}}',
        (
            '{"mcpServers":{"a":{}, "files": {"url": "URL", "headers": '
            '{"Authorization": "Bearer ${env:MCP_BRIDGE_TOKEN_FILES}"}},}}'
        ),
    ),
    (
        (
            '{\n  "mcpServers": {\n    "files": {\n      "url": "OLD", // mine\n      "timeout": 9,'
            '\n      "headers": {"authorization": "Bearer x", "X-Mine": "1"}\n    }\n  }\n}\n'
        ),
        (
            '{\n  "mcpServers": {\n    "files": {\n      "url": "URL", // mine\n      "timeout": 9,'
            '\n      "headers": {"X-Mine": "1", "Authorization": '
            '"Bearer ${env:MCP_BRIDGE_TOKEN_FILES}"}\n    }\n  }\n}\n'
        ),
    ),
    (
        '{"mcpServers": {"files": {"command": "mcp-bridge", "args": ["stdio", "files"]}}}',
        (
            '{"mcpServers": {"files": {"url": "URL", "headers": '
            '{"Authorization": "Bearer ${env:MCP_BRIDGE_TOKEN_FILES}"}}}}'
        ),
    ),
]
TOML_EDITS = [
    (
        "a = 1\r\n",
        (
            'a = 1\r\n\r\n[mcp_servers.files]\r\nurl = "URL"\r\n'
            'bearer_token_env_var = "MCP_BRIDGE_TOKEN_FILES"\r\n'
        ),
    ),
    (
        (
            '[ mcp_servers . "files" ] # mine\n  url = "OLD" # here\n  tool_timeout_sec = 9\n\n'
            '[mcp_servers.files.http_headers]\nX = "1"\n[z]'
        ),
        (
            '[ mcp_servers . "files" ] # mine\n  url = "URL" # here\n  tool_timeout_sec = 9\n'
            '  bearer_token_env_var = "MCP_BRIDGE_TOKEN_FILES"\n\n'
            '[mcp_servers.files.http_headers]\nX = "1"\n[z]'
        ),
    ),
    (
        '[mcp_servers.files]\ncommand = "mcp-bridge"\nargs = [\n "stdio",\n "files", # so\n]',
        '[mcp_servers.files]\nurl = "URL"\nbearer_token_env_var = "MCP_BRIDGE_TOKEN_FILES"\n',
    ),
]

_SPACES = st.sampled_from(["", " ", "\n", "\n  ", "\t", "\r\n", " /* , { */ ", ' // [ "\n'])
NAMES = st.sampled_from(["a", "mcpServer", "mcpservers", "files", "//", "/*", 'q"', "é", "}"])
_ENDS = st.sampled_from(["", ","])


@st.composite
def laid_out(draw, value):
    """The value's text, with white space, comments and commas anywhere they may stand."""

    def space():
        return draw(_SPACES)

    if not isinstance(value, dict | list):
        return space() + json.dumps(value, ensure_ascii=draw(st.booleans())) + space()
    items = []
    for key in value:
        item = key if isinstance(value, list) else value[key]
        text = draw(laid_out(item))
        name = "" if isinstance(value, list) else f"{space()}{json.dumps(key)}{space()}:"
        items.append(name + text)
    inside = ",".join(items) + (draw(_ENDS) if items else "") + space()
    return space() + ("[%s]" if isinstance(value, list) else "{%s}") % inside + space()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "a,}", "// x", '\\"', "é\n"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


LINES = st.sampled_from(
    [
        "[a]\n",
        "[[b]]\n",
        "[mcp_servers.other]\n",
        '[mcp_servers.other.env]\nK = "v"\n',
        "# [mcp_servers.files]\n",
        "\n",
        "  \t\r\n",
    ]
)
PAIRS = st.sampled_from(
    [
        "{} = 1\n",
        '{} = "[mcp_servers.files]"\r\n',
        "{} = '''\n[mcp_servers.files]\nurl = 1\n''' # '\n",
        '{} = """\n[mcp_servers.files]""\\""""\n',
        "{} = [ # ]\n  [1, 2], # [\n]\n",
        '{} = {{ x = "}}", y.z = [] }}\n',
    ]
)


def common(one, other):
    """How long the same beginning of both is."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def kept(before, after):
    """Whether the second is the first with one comma and one piece more, in this order."""
    at = common(before, after)
    for comma in (0, 1):
        if comma and after[at : at + 1] not in {",", b","}:
            continue
        rest, added = before[at:], after[at + comma :]
        if any(
            added.endswith(rest[cut:]) and len(rest) - cut <= len(added) - cut
            for cut in range(common(rest, added), -1, -1)
        ):
            return True
    return False
