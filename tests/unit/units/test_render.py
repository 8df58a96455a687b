"""A drop-in's text: whole, without a directive that a value has made, or refused with all reasons."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.model.addresses import public
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units import render
from autobot_mcp_bridge.units.render import drop_in
from autobot_mcp_bridge.units.sandbox.confinement import Facts
from autobot_mcp_bridge.units.sandbox.profiles import PROFILES
from autobot_mcp_bridge.units.sandbox.resolvers import Resolvers

KNOWN = (
    *("User", "StateDirectory", "CacheDirectory", "WorkingDirectory", "SupplementaryGroups"),
    *(
        "ExecStart",
        "Environment",
        "LoadCredential(?:Encrypted)?",
        "MemoryMax",
        "MemoryHigh",
        "CPUQuota",
        "CPUWeight",
        "IOWeight",
        "TasksMax",
    ),
    *("PrivateNetwork", "RestrictAddressFamilies", "IPAddressAllow", "RestrictNamespaces"),
    *("ProcSubset", "TemporaryFileSystem"),
    *(
        "SystemCallFilter",
        "LimitNOFILE",
        "MemoryDenyWriteExecute",
        "ProtectHome",
        "NoExecPaths",
        "ExecPaths",
    ),
    *("BindReadOnlyPaths", "BindPaths", "ReadOnlyPaths"),
)
LINE = re.compile(rf"#.*|\[Service\]|({'|'.join(KNOWN)})=.*|")
TEXT = st.text(
    st.characters(max_codepoint=0x17F, exclude_characters="\0\n")
    | st.sampled_from("\\\"'%$;\r\t\x85\u2028\u2029\ufffe"),
    max_size=20,
)


def spec(**keys):
    return ServerSpec.model_validate({"name": "files", "command": ["/usr/bin/thing"], **keys})


def lines(definition, argv=("/usr/bin/thing",), **env):
    return drop_in(definition, Command(argv, env)).splitlines()


def values(text, name):
    return [line.partition("=")[2] for line in text if line.startswith(f"{name}=")]


@given(st.lists(TEXT, max_size=4), st.dictionaries(st.just("A") | st.just("B"), TEXT), TEXT)
def test_no_value_becomes_a_directive(words, variables, folder):
    plain = lines(spec(env=dict.fromkeys(variables, "")))
    definition = spec(env=variables, paths={"read": [f"/srv/{folder}"]}, cwd=f"/srv/{folder}")
    try:
        text = drop_in(definition, Command(["/usr/bin/thing", *words]))
    except UsageError:
        return
    # splitlines() knows line ends that systemd does not; those are no ends here.
    found = text.split("\n")[:-1]

    assert all(LINE.fullmatch(line) for line in found), found
    assert len(found) == len(plain) + len(("NoExecPaths", "BindReadOnlyPaths"))


def test_a_drop_in_names_user_directories_and_limits():
    found = lines(
        spec(
            tenant="acme",
            project="web",
            limits={"memory": "64M", "cpu": "150%", "tasks": 40, "open_files": 2048},
            groups=["acme"],
            credentials={"TOKEN": "github-acme"},
        )
    )

    for wanted in (
        "StateDirectory=mcp-bridge/acme/web/files",
        "CacheDirectory=mcp-bridge/acme/web/files",
        "WorkingDirectory=/var/lib/mcp-bridge/acme/web/files",
        "MemoryMax=67108864",
        "CPUQuota=150%",
        "TasksMax=40",
        "LimitNOFILE=2048",
        "SupplementaryGroups=acme",
        "LoadCredential=TOKEN:/etc/credstore/github-acme",
        'NoExecPaths="/var/lib/mcp-bridge/acme/web/files"',
        'NoExecPaths="/var/cache/mcp-bridge/acme/web/files"',
    ):
        assert wanted in found
    assert re.fullmatch(r"mb-[a-z2-7]{16}", *values(found, "User"))
    assert values(found, "ExecStart") == [
        "",
        ':/usr/bin/python3 -I -S /usr/lib/mcp-bridge/launch.py "/usr/bin/thing"',
    ]


def test_weights_and_the_soft_limit_are_set_only_where_they_are_asked_for():
    limits = {"memory_high": "384M", "cpu_weight": 20, "io_weight": 300}
    asked, plain = lines(spec(limits=limits)), lines(spec())

    assert set(asked) - set(plain) == {"MemoryHigh=402653184", "CPUWeight=20", "IOWeight=300"}
    assert set(plain) <= set(asked)


def test_a_credential_from_a_file_or_as_a_file_is_told_by_its_source_and_its_id():
    entries = {"A": {"file": "/etc/ac%me/a"}, "B": {"name": "gcp", "as": "file"}}
    found = lines(spec(credentials=entries))

    assert values(found, "LoadCredential") == ["A:/etc/ac%%me/a", "B.file:/etc/credstore/gcp"]


def test_a_credential_that_is_encrypted_is_loaded_as_such():
    definition = spec(credentials={"TOKEN": "github", "OTHER": "plain"})
    facts = Facts(are_encrypted=frozenset({"github"}))
    found = drop_in(definition, Command(("/usr/bin/thing",)), facts).splitlines()

    assert values(found, "LoadCredential") == ["OTHER:/etc/credstore/plain"]
    assert values(found, "LoadCredentialEncrypted") == [
        "TOKEN:/etc/mcp-bridge/credstore.encrypted/github"
    ]


def test_the_definition_s_variables_win_over_the_command_s_and_those_over_ours():
    found = values(lines(spec(env={"A": "own"}), A="command", PATH="/node"), "Environment")

    assert '"MCP_BRIDGE_ENV_A=own"' in found
    assert '"MCP_BRIDGE_ENV_PATH=/node"' in found
    assert '"MCP_BRIDGE_ENV_HOME=/var/lib/mcp-bridge/default/-/files"' in found


@pytest.mark.parametrize("run_as", [None, "alice"])
def test_a_server_is_told_the_name_of_its_user_which_it_cannot_look_up(run_as):
    found = lines(spec(run_as=run_as))

    (user,) = values(found, "User")
    told = values(found, "Environment")
    assert f'"MCP_BRIDGE_ENV_USER={user}"' in told
    assert f'"MCP_BRIDGE_ENV_LOGNAME={user}"' in told


@pytest.mark.parametrize(
    ("profile", "command", "argv", "denied"),
    [
        (None, "uvx", "/usr/bin/python3", "yes"),
        (None, "node", "/usr/bin/node", "no"),
        (None, "npx", "/opt/node/bin/node", "no"),
        (None, "/usr/bin/thing", "/usr/bin/thing", "yes"),
        ("node", "/usr/bin/thing", "/usr/bin/thing", "no"),
        ("python", "node", "/usr/bin/node", "yes"),
        ("strict", "node", "/usr/bin/node", "yes"),
    ],
)
def test_only_a_compiling_server_may_make_code(profile, command, argv, denied):
    found = lines(spec(profile=profile, command=[command]), [argv])

    assert values(found, "MemoryDenyWriteExecute") == [denied]


@pytest.mark.parametrize(("profile", "compiles"), [("npx", "no"), ("uvx", "yes")])
def test_a_live_profile_has_the_internet_and_executes_from_its_cache(profile, compiles):
    cache, state = (f"/var/{root}/mcp-bridge/default/-/files" for root in ("cache", "lib"))
    found = lines(spec(profile=profile, command=[profile, "x"]), [f"/usr/bin/{profile}", "x"])
    full = lines(spec(command=["node", "x"]), ["/usr/bin/node", "x"])

    assert values(found, "PrivateNetwork") == ["no"]
    allowed = lines(spec(network={"mode": "internet"}))
    assert values(found, "IPAddressAllow") == values(allowed, "IPAddressAllow") != []
    assert values(found, "MemoryDenyWriteExecute") == [compiles]
    assert values(full, "NoExecPaths") == [f'"{state}"', f'"{cache}"']
    assert values(found, "NoExecPaths") == [f'"{state}"']
    assert any(f"{cache}/" in text for text in values(found, "Environment"))
    assert values(full, "PrivateNetwork") == values(full, "IPAddressAllow") == []


@pytest.mark.parametrize("profile", ["npx", "uvx"])
@pytest.mark.parametrize("mode", ["none", "loopback"])
def test_a_live_profile_is_not_kept_from_its_registry(profile, mode):
    with pytest.raises(UsageError, match=rf"\$\.network\.mode: {mode} keeps {profile} from its"):
        lines(spec(profile=profile, command=[profile, "x"], network={"mode": mode}))


@pytest.mark.parametrize(
    ("mode", "private", "allowed"),
    [
        ("loopback", "yes", ["localhost"]),
        ("list", "no", ["192.0.2.7/32 2001:db8::/32", "10.0.0.53"]),
        ("internet", "no", [*map(" ".join, public()), "10.0.0.53"]),
    ],
)
def test_a_network_mode_lets_through_what_it_says(mode, private, allowed):
    listed = ["192.0.2.7", "2001:db8::/32"] if mode == "list" else []
    definition = spec(network={"mode": mode, "allow": listed})
    facts = Facts(resolvers=Resolvers(("10.0.0.53",)))
    found = drop_in(definition, Command(["/usr/bin/thing"]), facts).splitlines()

    assert values(found, "PrivateNetwork") == [private]
    assert values(found, "RestrictAddressFamilies") == ["AF_INET AF_INET6"]
    assert values(found, "IPAddressAllow") == allowed


@pytest.mark.parametrize("profile", PROFILES)
def test_node_alone_is_told_of_interfaces_and_only_with_a_network(profile):
    command = [profile if profile in ("npx", "uvx") else "/usr/bin/thing"]
    found = lines(spec(profile=profile, command=command, network={"mode": "internet"}))
    offline = lines(spec(profile="node"))

    (families,) = values(found, "RestrictAddressFamilies")
    assert ("AF_NETLINK" in families.split()) == (profile in ("node", "npx"))
    assert values(offline, "RestrictAddressFamilies") == []


def test_a_browser_may_make_what_chromium_s_own_sandbox_is_made_of():
    found = lines(spec(profile="browser"))

    assert values(found, "RestrictNamespaces") == ["user pid net"]
    assert values(found, "SystemCallFilter") == ["capset chroot"]
    assert values(found, "RestrictAddressFamilies") == ["AF_UNIX"]
    assert values(found, "PrivateNetwork") == ["yes"]
    assert values(found, "TemporaryFileSystem") == ["/run:ro"]
    assert values(found, "MemoryDenyWriteExecute") == ["no"]


def test_a_strict_server_makes_no_file_in_memory_to_execute():
    assert values(lines(spec(profile="strict")), "SystemCallFilter") == ["~memfd_create"]
    assert values(lines(spec(profile="python")), "SystemCallFilter") == []


def test_paths_are_bound_not_executable_and_open_the_homes_only_if_needed():
    paths = {"read": ["/srv/a b"], "write": ["/srv/w"]}
    found = lines(spec(paths=paths))
    at_home = lines(spec(paths={"read": ["/home/alice/docs"]}))

    assert values(found, "BindReadOnlyPaths") == ['"/srv/a b"']
    assert values(found, "BindPaths") == ['"/srv/w"']
    assert {'"/srv/a b"', '"/srv/w"'} < {*values(found, "NoExecPaths")}
    assert values(found, "ProtectHome") == ["yes"]
    assert values(at_home, "ProtectHome") == ["tmpfs"]


@pytest.mark.parametrize(
    ("keys", "clause"),
    [
        ({"profile": "npx"}, r"\$\.profile: npx is for a command that begins with npx"),
        ({"sessions": "isolated"}, r"\$\.sessions"),
        ({"env": {"A": "se\ufffecret"}}, r"\$\.env\.A: a surrogate or noncharacter"),
        ({"env": {"A": "x" * 140_000}}, r"\$\.env\.A: allowed are at most 131071 bytes"),
        ({"env": {"A": "a"}, "credentials": {"A": "b"}}, r"\$\.credentials\.A: stands in env"),
        ({"paths": {"read": ["/srv/../etc"]}}, r"\$\.paths\.read\[0\]: allowed is an absolute"),
        ({"paths": {"write": ["/srv/a:b"]}}, r"\$\.paths\.write\[0\]: a path with a colon"),
        ({"paths": {"write": ["/"]}}, r"\$\.paths\.write\[0\]: \S+ cannot be shared"),
        ({"paths": {"read": ["/var/lib/mcp-bridge/x"]}}, "cannot be shared"),
        ({"paths": {"read": ["/var/lib/private"]}}, "cannot be shared"),
        ({"paths": {"read": ["/run/mcp-bridge"]}}, "cannot be shared"),
        ({"paths": {"read": ["/proc/1"]}}, "cannot be shared"),
        ({"paths": {"read": ["/srv"], "write": ["/srv"]}}, "stands there twice"),
        ({"cwd": "/home/alice"}, r"\$\.cwd: the sandbox hides /home; name the directory"),
        ({"cwd": "/srv/a "}, r"\$\.cwd: a path that ends in a blank"),
    ],
)
def test_what_a_unit_cannot_carry_or_keep_is_refused_with_its_place(keys, clause):
    with pytest.raises(UsageError, match=f"files: .*{clause}") as refused:
        lines(spec(**keys))

    assert "secret" not in str(refused.value) and len(str(refused.value)) < 300


@pytest.mark.parametrize("argv", [("/usr/bin/a", "\0"), ("/usr/bin/a", "\ud800"), ("relative",)])
def test_a_word_that_no_unit_can_carry_is_refused(argv):
    with pytest.raises(UsageError, match=r"\$\.command\[\d\]"):
        lines(spec(), argv)


def test_more_than_a_line_of_a_unit_or_a_start_can_hold_is_refused():
    with pytest.raises(UsageError, match=r"\$\.command: allowed are at most"):
        lines(spec(), ("/usr/bin/a", *["\x01" * 100_000] * 3))
    with pytest.raises(UsageError, match="command and env together"):
        lines(spec(env={f"A{n}": "x" * 100_000 for n in range(11)}))


@pytest.mark.parametrize("program", ["/home/alice/server", "/root/x", "/tmp/x"])
def test_a_program_that_the_sandbox_hides_is_refused_unless_its_place_is_shared(program):
    with pytest.raises(UsageError, match=r"the sandbox hides /\w+"):
        lines(spec(), (program,))
    shared = lines(spec(paths={"read": [program.rpartition("/")[0]]}), (program,))
    assert f'"-{program}"' in values(shared, "ExecPaths")


def test_a_working_directory_may_be_shared_or_in_the_private_tmp():
    shared = {"paths": {"write": ["/home/alice"]}, "cwd": "/home/alice/work"}

    assert values(lines(spec(**shared)), "WorkingDirectory") == ["/home/alice/work"]
    assert values(lines(spec(cwd="/tmp")), "WorkingDirectory") == ["/tmp"]


def test_all_reasons_are_told_at_once():
    with pytest.raises(UsageError) as refused:
        lines(spec(profile="npx", network={"mode": "loopback"}, cwd="/a//b", sessions="isolated"))

    assert str(refused.value).count("$.") == 4


def test_a_template_s_forgotten_filter_still_makes_no_line():
    with pytest.raises(ValueError, match="line break"):
        render._one_line("a\nExecStartPre=+/bin/sh")
