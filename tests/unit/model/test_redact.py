"""What is taken out of a text before people see it, and what stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.model.redact import Redactor


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Bearer abc", "Bearer «redacted»"),
        ("key sk-ant-api03-abcdef", "key «redacted»"),
        ("ghp_0123456789abcdef", "«redacted»"),
        ("api_key='hunter2'", "api_key='«redacted»'"),
        ('"password": "hunter2"', '"password": "«redacted»"'),
        ('"password": "a b; c, \\" d"}', '"password": "«redacted»"}'),
        (r'{"log": "{\"token\": \"a b\"} c"}', r'{"log": "{\"token\": \"«redacted»"}'),
        ("passphrase = 'a b' c", "passphrase = '«redacted»' c"),
        ("aws_secret_access_key=abc/def+0123", "aws_secret_access_key=«redacted»"),
        (
            "key -----BEGIN RSA PRIVATE KEY-----\\nMIIE/ab\\n-----END RSA PRIVATE KEY----- x",
            "key -----BEGIN RSA PRIVATE KEY-----«redacted»-----END RSA PRIVATE KEY----- x",
        ),
        (
            "-----BEGIN PRIVATE KEY----- MIIE/ab",
            "-----BEGIN PRIVATE KEY-----«redacted»",
        ),
        ("wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLE1234", "«redacted»"),
        ("QWxhZGRpbjpvcGVu/HNlc2FtZQ+1234567890abcd==", "«redacted»"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig", "«redacted»"),
    ],
)
def test_what_looks_like_a_secret_is_taken_out(line, shown):
    assert Redactor()(line) == shown


@pytest.mark.parametrize(
    "line",
    [
        'File "/usr/lib/node_modules/server-everything/dist/index.js", line 3, in main',
        "ModuleNotFoundError: No module named 'mcp'",
        "this_is_a_very_long_function_name_without_any_number",
        "listening on 127.0.0.1:8080",
    ],
)
def test_what_helps_to_find_a_mistake_stays(line):
    assert Redactor()(line) == line


@given(st.text(), st.text(min_size=7))
def test_a_value_of_the_environment_never_comes_through(text, value):
    shown = Redactor([value])(text + value + text)

    assert value not in shown or value in "«redacted»"


def test_control_characters_cannot_forge_a_line():
    assert Redactor()("a\r\nb\x1b[2J\u2028c\td") == "a��b�[2J�c\td"
