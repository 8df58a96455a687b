"""How npx and uvx commands are read."""

import pytest

from autobot_mcp_bridge.units.packages.specs import Kind, parse_command


def read(text):
    return parse_command(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("npx cowsay", ("cowsay", None, False, None, ())),
        ("npx -y cowsay@1.5.0 hi", ("cowsay", "1.5.0", True, None, ("hi",))),
        ("npx --yes @a/b@^2 -v --x=1", ("@a/b", "^2", False, None, ("-v", "--x=1"))),
        ("npx -p @a/b@1.0.0-rc.1 tool x", ("@a/b", "1.0.0-rc.1", True, "tool", ("x",))),
        ("npx --package=@a/b tool", ("@a/b", None, False, "tool", ())),
        ("npx @a/b@latest", ("@a/b", "latest", False, None, ())),
        ("/usr/bin/npx -y a -- b", ("a", None, False, None, ("--", "b"))),
    ],
)
def test_an_npx_command_names_package_version_program_and_arguments(text, expected):
    spec = read(text)

    assert spec.kind is Kind.NPM
    assert expected == (spec.name, spec.version, spec.exact, spec.binary, spec.args)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uvx mcp-server-time", ("mcp-server-time", None, False, None, ())),
        ("uvx mcp_server.Time@2026.1.2", ("mcp-server-time", "2026.1.2", True, None, ())),
        ("uvx --from mcp[cli]==2.3.0 mcp", ("mcp", "2.3.0", True, "mcp", ("cli",))),
        ("uvx --from=a>=1,<2 b", ("a", ">=1,<2", False, "b", ())),
        ("uvx a@latest", ("a", None, False, None, ())),
    ],
)
def test_a_uvx_command_names_package_version_program_and_extras(text, expected):
    spec = read(text)

    assert spec.kind is Kind.PYPI
    assert expected == (spec.name, spec.version, spec.exact, spec.binary, spec.extras)


@pytest.mark.parametrize(
    "text",
    [
        "npx",
        "npx -y",
        "npx -c cowsay",
        "npx --registry=http://x a",
        "npx ../a",
        "npx @a/../../b",
        "npx ./dir",
        "npx a/b",
        "npx github:a/b",
        "npx https://x/y.tgz",
        "npx a@file:../x",
        "npx -p a",
        "npx -p a ../b",
        "npx -p -x b",
        "uvx",
        "uvx --with",
        "uvx --with ../x a",
        "uvx --with -e a",
        "uvx --python 3.12 a",
        "uvx --from git+https://x a",
        "uvx ../a",
        "uvx a@../b",
        "uvx --from a ../b",
        "uvx --from -e a",
        "uvx a[../x]",
    ],
)
def test_what_is_not_understood_is_refused_with_what_is_allowed(text):
    with pytest.raises(ValueError, match="allowed"):
        read(text)


@pytest.mark.parametrize("text", ["node server.js", "mcp-bridge demo", "python3 -m x"])
def test_any_other_command_is_none_of_the_two(text):
    assert read(text) is None


def test_two_servers_with_other_arguments_share_one_package():
    assert read("npx -y a@1.0.0 x").package == read("npx -p a@1.0.0 tool").package
    assert read("npx a@1.0.0").package != read("npx a@1.0.1").package


def test_packages_beside_a_uvx_package_make_it_another_one_in_whatever_order():
    one = read("uvx --with b[x]<2 --with=c@1.0 a@1.0 --with d")

    assert (one.needs, one.args) == (("b[x]<2", "c==1.0"), ("--with", "d"))
    assert one.label == "a==1.0 with b[x]<2 with c==1.0"
    assert one == read("uvx --with c==1.0 --with b[x]<2 --with b[x]<2 a@1.0 --with d")
    plain = read("uvx a@1.0")
    assert one.package != plain.package
    assert one.directory_name.startswith("a+with-") and plain.directory_name == "a"
    assert read("uvx --with b<3 a@1.0").directory_name != one.directory_name
