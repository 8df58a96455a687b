import json
import os

import pytest

from autobot_mcp_bridge.config.load import load
from autobot_mcp_bridge.model.server import ServerSpec
from support.configured import SMALL, loaded_from, places_in, told, write_servers, write_text

SECRET = "mcpb_this-must-never-be-shown"


@pytest.fixture
def places(tmp_path):
    return places_in(tmp_path)


def test_no_files_at_all_are_an_empty_configuration_with_the_defaults_of_the_host(tmp_path):
    loaded = load(places_in(tmp_path / "a"))

    assert (loaded.servers, loaded.problems) == ((), ())
    assert loaded.host.listen.address == "127.0.0.1"


def test_the_smallest_server_gets_every_default(places):
    loaded = loaded_from(places, SMALL)

    assert loaded.problems == ()
    assert loaded.servers == (ServerSpec(name="time", command=("uvx", "mcp-server-time")),)


def test_files_of_servers_d_join_servers_json_in_the_order_of_their_names(places):
    write_servers(places, SMALL)
    for name in ("b", "a"):
        text = json.dumps({"version": 1, "servers": [{"name": name, "command": ["x"]}]})
        write_text(places.servers_d / f"{name}.json", text)
    write_text(places.servers_d / ".hidden.json", "{")
    write_text(places.servers_d / "a.json.bak", "{")

    loaded = load(places)

    assert [spec.name for spec in loaded.servers] == ["time", "a", "b"]
    assert loaded.problems == ()


def test_defaults_are_merged_below_each_server_of_their_own_file_only(places):
    other = {"version": 1, "servers": [{"name": "other", "command": ["x"]}]}
    write_text(places.servers_d / "other.json", json.dumps(other))

    loaded = loaded_from(
        places,
        {**SMALL, "limits": {"cpu": "50%"}},
        defaults={"limits": {"memory": "64M", "cpu": "20%"}},
    )

    first, second = loaded.servers
    assert (first.limits.memory, first.limits.cpu) == (64 << 20, 50)
    assert second.limits.memory == 512 << 20


def test_all_mistakes_are_told_at_once_each_with_its_path_value_and_what_is_allowed(places):
    loaded = loaded_from(
        places,
        {"name": "Files", "command": ["x"], "limits": {"memory": "lots", "tasks": 0}},
        {"command": ["x"], "warm": "yes", "sessions": "both"},
        {**SMALL, "timeouts": {"start": 0}, "limits": {"tasks": "5"}},
        "nonsense",
    )

    values = {problem.path: problem.value for problem in loaded.problems}
    assert values == {
        "$.servers[0].name": '"Files"',
        "$.servers[0].limits.memory": '"lots"',
        "$.servers[0].limits.tasks": "0",
        "$.servers[1].name": "",
        "$.servers[1].warm": '"yes"',
        "$.servers[1].sessions": '"both"',
        "$.servers[2].timeouts.start": "0.0",
        "$.servers[2].limits.tasks": '"5"',
        "$.servers[3]": "",
    }
    allowed = told(loaded)
    assert "a number with K, M or G" in allowed["$.servers[0].limits.memory"]
    assert allowed["$.servers[0].limits.tasks"] == "allowed is greater or equal to 1"
    assert allowed["$.servers[1].name"] == "missing; it must be given"
    assert allowed["$.servers[1].warm"] == "allowed is true or false"
    assert allowed["$.servers[1].sessions"] == "allowed is 'shared' or 'isolated'"


@pytest.mark.parametrize(
    ("server", "path", "near"),
    [
        ({"comand": ["x"]}, "$.servers[0].comand", "'command'"),
        ({"limits": {"memmory": "1G"}}, "$.servers[0].limits.memmory", "'memory'"),
        ({"memory": "1G"}, "$.servers[0].memory", "'limits.memory'"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(places, server, path, near):
    allowed = told(loaded_from(places, {**SMALL, **server}))

    assert f"unknown key, nearest is {near}" in allowed[path]


def test_unknown_keys_of_the_file_itself_and_a_wrong_version_are_told(places):
    allowed = told(loaded_from(places, SMALL, sevrers=[], version=2))

    assert "nearest is 'servers'" in allowed["$.sevrers"]
    assert allowed["$.version"] == "allowed is 1"


@pytest.mark.parametrize(
    "server",
    [
        {"env": {"TOKEN": [SECRET]}},
        {"env": {f"A B{chr(0)}": SECRET}},
        {"env": SECRET},
        {"envs": {"TOKEN": SECRET}},
        {"token": SECRET},
        {"command": f"run --token={SECRET}"},
        {"command": ["run", f"{SECRET}\n"]},
        {"headers": {"Authorization": 5, "X": SECRET}},
        {"credentials": {"GITHUB_TOKEN": SECRET}},
        {"tokens_sha256": [SECRET]},
        {"url": f"https://user:{SECRET}@host"},
        {"limits": {"env": SECRET}},
        {"limits": SECRET},
    ],
)
def test_a_secret_is_never_shown_wherever_a_person_put_it(places, server):
    if "limits" in server and server["limits"] == SECRET:
        server = {"env": {"A": 5}, "headers": {"A": SECRET}}
    loaded = loaded_from(places, {**SMALL, **server})

    assert loaded.problems
    assert SECRET not in "".join(map(str, loaded.problems))


def test_a_default_with_a_mistake_is_told_once_and_at_its_own_place(places):
    servers = [{**SMALL, "name": f"s{n}"} for n in range(3)]

    loaded = loaded_from(places, *servers, defaults={"limits": {"memory": "lots", "foo": 1}})

    assert sorted(p.path for p in loaded.problems) == [
        "$.defaults.limits.foo",
        "$.defaults.limits.memory",
    ]


def test_a_name_or_a_token_cannot_be_a_default(places):
    loaded = loaded_from(places, SMALL, defaults={"name": "a", "tokens_sha256": []})

    assert set(told(loaded)) == {"$.defaults.name", "$.defaults.tokens_sha256"}


def test_a_doubled_key_hides_no_other_mistake_of_its_file(places):
    text = '{"version":1,"servers":[{"name":"a","name":"a","command":["a"],"warm":"yes"}]}'
    write_text(places.servers_json, text)

    assert {problem.path for problem in load(places).problems} >= {"$.servers[0].warm"}
    assert len(load(places).problems) == 2


def test_the_same_server_twice_is_an_error_that_names_both_places(places):
    document = json.dumps({"version": 1, "servers": [{**SMALL, "tenant": "default"}]})
    write_text(places.servers_d / "time.json", document)

    (problem,) = loaded_from(places, SMALL).problems

    assert problem.file == str(places.servers_d / "time.json")
    assert problem.path == "$.servers[0].name"
    assert f"{places.servers_json} $.servers[0]" in problem.allowed


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"warm_pool": 1}, "warm_pool"),
    ],
)
def test_what_is_not_built_yet_is_refused_and_not_ignored(places, settings, path):
    allowed = told(loaded_from(places, {**SMALL, **settings}))

    assert allowed[f"$.servers[0].{path}"].startswith("not built yet")


def test_isolated_sessions_are_taken_without_units_and_refused_with_them(places):
    write_servers(places, {**SMALL, "sessions": "isolated"})

    assert not load(places, units=False).problems
    assert "allowed is 'shared'" in told(load(places, units=True))["$.servers[0].sessions"]


def test_a_warm_server_with_isolated_sessions_is_refused(places):
    allowed = told(loaded_from(places, {**SMALL, "sessions": "isolated", "warm": True}))

    assert "no process before a client comes" in allowed["$.servers[0].warm"]


@pytest.mark.parametrize("mode", ["list", "names"])
def test_a_list_of_places_is_for_the_modes_that_have_one(places, mode):
    listed = {"mode": mode, "allow": ["192.0.2.1"]}

    assert loaded_from(places, {**SMALL, "network": listed}).servers
    for wrong in ({"mode": mode}, {**listed, "mode": "none"}, {**listed, "mode": "internet"}):
        assert "$.servers[0].network.allow" in told(
            loaded_from(places, {**SMALL, "network": wrong})
        )


def test_a_list_of_addresses_names_nothing_else(places):
    entries = ["192.0.2.1", "10.0.0.1/8", "example.org", "0.0.0.0/0"]
    allowed = told(loaded_from(places, {**SMALL, "network": {"mode": "list", "allow": entries}}))

    assert allowed.keys() == {f"$.servers[0].network.allow[{index}]" for index in (1, 2, 3)}


@pytest.mark.parametrize(
    ("key", "value"),
    [("credentials", {"TOKEN": "github"}), ("groups", ["acme"]), ("run_as", "nobody")],
)
def test_what_only_units_keep_is_refused_without_them_and_taken_with_them(places, key, value):
    write_servers(places, {**SMALL, key: value})

    assert told(load(places, units=False))[f"$.servers[0].{key}"].startswith("only a unit")
    assert not load(places, units=True).problems


def test_where_apply_has_been_at_work_servers_are_units(places):
    write_servers(places, {**SMALL, "groups": ["acme"]})
    assert load(places).problems
    places.state_dir.mkdir(parents=True, exist_ok=True)
    places.accepted.touch()

    assert not load(places).problems


@pytest.mark.parametrize("name", ["*", "../x", "a/../b", ""])
def test_a_credential_can_only_name_one_secret(places, name):
    allowed = told(loaded_from(places, {**SMALL, "credentials": {"TOKEN": name}}))

    assert "$.servers[0].credentials.TOKEN" in allowed


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"tenant": "packages"}, "tenant"),
        ({"name": "socket"}, "name"),
        ({"name": "a" * 32, "tenant": "b" * 32, "project": "c" * 32}, ""),
        ({"timeouts": {"stop": "1h"}}, "timeouts.stop"),
        ({"caps": {"queue": "1M", "body": "2M"}}, "caps.queue"),
        ({"command": ["./server"]}, "command[0]"),
        ({"command": []}, "command"),
        ({"command": [""]}, "command"),
        ({"limits": {"memory": 0}}, "limits.memory"),
        # systemd would ignore each of these, and there would be no limit.
        ({"limits": {"memory": "9999999G"}}, "limits.memory"),
        ({"limits": {"memory_high": "512M"}}, "limits.memory_high"),
        ({"limits": {"memory_high": "1M"}}, "limits.memory_high"),
        ({"limits": {"cpu": "0%"}}, "limits.cpu"),
        ({"limits": {"cpu_weight": 0}}, "limits.cpu_weight"),
        ({"limits": {"cpu_weight": 10_001}}, "limits.cpu_weight"),
        ({"limits": {"io_weight": 10_001}}, "limits.io_weight"),
        ({"limits": {"tasks": 4_194_305}}, "limits.tasks"),
        ({"limits": {"open_files": 1_048_577}}, "limits.open_files"),
    ],
)
def test_settings_that_cannot_work_are_refused(places, settings, path):
    allowed = told(loaded_from(places, {**SMALL, **settings}))

    assert list(allowed) == [f"$.servers[0].{path}".rstrip(".")]


def test_a_disabled_server_is_checked_as_well_and_told_apart(places):
    off = {**SMALL, "name": "off", "enabled": False}

    loaded = loaded_from(places, SMALL, off)
    broken = loaded_from(places, {**off, "warm": 1})

    assert [spec.name for spec in loaded.enabled] == ["time"]
    assert [spec.name for spec in loaded.servers] == ["time", "off"]
    assert set(told(broken)) == {"$.servers[0].warm"}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"version": 1,\n "servers": [}', "line 2, column 14"),
        ("", "line 1, column 1"),
        ('{"version": 1, "version": 1}', "$.version"),
        (
            '{"version": 1, "servers": [{"name": "a", "command": ["a"], "env": {"A": "1", "A": "2"}}]}',
            "$.servers[0].env.A",
        ),
        ("[1]", "$"),
        ('{"version": NaN}', "$"),
        ('{"version": 1, "servers": [{"name": "\\ud800"}]}', "$.servers[0].name"),
        ("[" * 100_000, "$"),
        ("[" * 50 + "]" * 50, "$" + "[0]" * 32),
        ('{"version": ' + "1" * 5000 + "}", "$"),
    ],
)
def test_text_that_is_not_plain_json_is_told_with_its_place(places, text, where):
    write_text(places.servers_json, text)

    (problem,) = load(places).problems

    assert problem.path == where
    assert problem.file == str(places.servers_json)


def test_bytes_that_are_no_text_are_told(places):
    places.servers_json.write_bytes(b'{"version": 1, "x": "\xff"}')

    assert "UTF-8" in load(places).problems[0].allowed


def test_host_toml_is_read_and_its_mistakes_are_told_with_the_others(places):
    write_text(places.host_toml, '[listen]\nport = "x"\n[limit]\n[environment]\npass = ["A B"]\n')

    loaded = loaded_from(places, {**SMALL, "warm": 1})

    assert set(told(loaded)) == {
        "$.servers[0].warm",
        "$.listen.port",
        "$.limit",
        "$.environment.pass[0]",
    }


def test_host_toml_with_broken_syntax_names_line_and_column(places):
    write_text(places.host_toml, "[listen]\nport = \n")

    (problem,) = load(places).problems

    assert "at line 2, column 8" in problem.allowed


@pytest.mark.requirement("A5")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('[listen]\naddress = "0.0.0.0"', "$.listen.address"),
        ('[listen]\naddress = "example.net"', "$.listen.address"),
        ('[operator]\naddress = "::"', "$.operator.address"),
        ("[operator]\nport = 8765", "$.operator.port"),
        ('[tls]\ncertificate = "/a"', "$.tls.key"),
        ('[tls]\nkey = "/a"', "$.tls.certificate"),
        ('[tls]\ncertificate = "a/b.pem"\nkey = "/a"', "$.tls.certificate"),
        ('[tls]\ncertificate = "/a"\nkey = "/b c"', "$.tls.key"),
        (
            '[operator]\naddress = "::"\n[tls]\ncertificate = "/a"\nkey = "/a"',
            "$.operator.address",
        ),
        ("[audit]\nrequired = true\nfile = false", "$.audit.required"),
        ('[audit]\nmax_bytes = "1K"', "$.audit.max_bytes"),
        ('[audit]\nstderr = "some"', "$.audit.stderr"),
        ("[audit]\nbackups = 0", "$.audit.backups"),
        ('[http]\nallowed_origins = ["*"]', "$.http.allowed_origins[0]"),
        ('[http]\nallowed_hosts = ["https://a"]', "$.http.allowed_hosts[0]"),
        ('[http]\ntrusted_proxies = ["10.0.0.0/99"]', "$.http.trusted_proxies[0]"),
        ('[http]\ncors_headers = ["*"]', "$.http.cors_headers[0]"),
        ('[http]\ncors_headers = ["A: b"]', "$.http.cors_headers[0]"),
        ('[http]\npublic_url = "http://mcp.example"', "$.http.public_url"),
        ('[http]\npublic_url = "https://mcp.example/"', "$.http.public_url"),
        ('[http]\npublic_url = "https://MCP.example"', "$.http.public_url"),
        ('[http]\npublic_url = "https://u@mcp.example"', "$.http.public_url"),
        ('[oauth]\nissuer = "https://id.example"', "$.oauth.issuer"),
        ('[oauth]\njwks_uri = "https://id.example"', "$.oauth.jwks_uri"),
        ('[oauth]\nalgorithms = ["HS256"]', "$.oauth.algorithms[0]"),
        ('[oauth]\nalgorithms = ["none"]', "$.oauth.algorithms[0]"),
        ("[oauth]\nalgorithms = []", "$.oauth.algorithms"),
        ('[oauth]\nscopes = ["a b"]', "$.oauth.scopes[0]"),
        ('[oauth]\nscopes = ["mcp:{server}"]', "$.oauth.scopes[0]"),
        ('[oauth]\nleeway = "1h"', "$.oauth.leeway"),
        ('[oauth]\nkeys_kept = "1m"', "$.oauth.keys_kept"),
        (
            '[oauth]\nissuer = "http://id.example"\n[http]\npublic_url = "https://a"',
            "$.oauth.issuer",
        ),
        (
            '[oauth]\nissuer = "https://id.example/?a"\n[http]\npublic_url = "https://a"',
            "$.oauth.issuer",
        ),
    ],
)
def test_host_settings_that_must_not_be_are_refused(places, text, path):
    write_text(places.host_toml, text)

    assert list(told(load(places))) == [path]


@pytest.mark.requirement("A5")
def test_an_address_beyond_loopback_is_taken_with_the_explicit_word(places):
    write_text(places.host_toml, '[listen]\naddress = "0.0.0.0"\nbeyond_loopback = true')

    assert load(places).problems == ()


@pytest.mark.requirement("A5")
def test_an_address_beyond_loopback_is_taken_with_tls_by_paths_or_names(places):
    for certificate, key in (("/etc/tls/a.pem", "/etc/tls/a.key"), ("mcp-cert", "mcp-key")):
        tls = f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n'
        write_text(places.host_toml, f'[listen]\naddress = "0.0.0.0"\n{tls}')

        assert load(places).problems == ()


def test_a_file_of_more_than_4_mib_or_that_is_no_file_is_refused(places):
    write_text(places.servers_json, " " * ((4 << 20) + 1))
    os.mkfifo(places.host_toml)

    allowed = {problem.file: problem.allowed for problem in load(places).problems}

    assert "4 MiB" in allowed[str(places.servers_json)]
    assert "regular file" in allowed[str(places.host_toml)]


@pytest.mark.root
@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_as_root_a_file_that_others_may_write_is_refused(places, mode, need):
    need("root")
    write_servers(places, SMALL)
    places.servers_json.chmod(mode)

    (problem,) = load(places).problems

    assert "chmod go-w" in problem.allowed


def test_the_digest_changes_with_any_content_and_only_then(places):
    first = loaded_from(places, SMALL)
    again = load(places)
    write_text(places.host_toml, "")

    assert first.digest == again.digest
    assert load(places).digest != first.digest


OAUTH = """
[http]
public_url = "https://mcp.example"
[oauth]
issuer = "https://id.example/realms/acme"
scopes = ["mcp:{tenant}:{project}"]
"""


def test_an_issuer_is_taken_with_the_public_url_that_tokens_are_for(places):
    write_text(places.host_toml, OAUTH)

    loaded = loaded_from(places, {**SMALL, "scopes": ["mcp:{name}"]})

    assert loaded.problems == ()
    assert loaded.servers[0].scopes == ("mcp:{name}",)


def test_a_scope_with_a_place_that_nothing_fills_is_told(places):
    loaded = loaded_from(places, {**SMALL, "scopes": ["mcp:{user}", "mcp"]})

    assert "{tenant}, {project}, {name}" in told(loaded)["$.servers[0].scopes[0]"]


def test_an_issuer_without_the_libraries_says_how_to_get_them(places, monkeypatch):
    monkeypatch.setattr("autobot_mcp_bridge.config.callers.LIBRARIES", ("no_such_module",))
    write_text(places.host_toml, OAUTH)

    assert "autobot-mcp-bridge[oauth]" in told(load(places))["$.oauth.issuer"]


def test_what_this_host_lacks_is_that_server_s_own_trouble(places):
    lacks = {**SMALL, "name": "lacks", "cwd": "/no/such/directory"}
    off = {**lacks, "name": "off", "enabled": False}
    loaded = loaded_from(places, SMALL, lacks, off, {**SMALL, "name": "has", "cwd": "/"})

    assert loaded.problems == ()
    ((name, (problem,)),) = loaded.lacking.items()
    assert (name, problem.path) == ("lacks", "$.servers[1].cwd")
    assert problem.allowed == "allowed is a directory that exists"
