"""Which resolvers of the host a server may ask, and which not and why."""

import pytest

from autobot_mcp_bridge.units.sandbox import resolvers


def test_those_of_resolv_conf_are_used_the_first_three_as_glibc_does():
    text = "# a\nsearch lan\nnameserver 10.0.0.53\n  nameserver\t2001:db8::53 # b\nnameserver x\n"
    found = resolvers.parse(f"{text}nameserver 127.0.0.53\nnameserver 10.0.0.54\n")

    assert found.used == ("10.0.0.53", "2001:db8::53", "127.0.0.53")
    assert found.kept_out == ()
    assert found.sentence == "resolvers 10.0.0.53, 2001:db8::53, 127.0.0.53"


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1", "every service of this host"),
        ("::1", "every service of this host"),
        ("0.0.0.0", "every service of this host"),
        ("169.254.169.254", "metadata services"),
        ("168.63.129.16", "metadata services"),
        ("fe80::1%eth0", "metadata services"),
        ("fec0::1%eth0", "metadata services"),
    ],
)
def test_one_where_more_than_names_is_answered_is_kept_out_and_said(address, why):
    found = resolvers.parse(f"nameserver {address}\n")

    assert found.used == ()
    assert found.sentence.startswith(f"no resolver; not resolver {address}: {why}")


@pytest.mark.parametrize("text", ["", "search lan\n", "nameserver\n", "\0\n"])
def test_without_any_the_one_that_glibc_takes_is_kept_out(text):
    assert resolvers.parse(text).kept_out[0][0] == "127.0.0.1"


def test_a_file_that_is_not_there_names_none(tmp_path):
    assert resolvers.read(tmp_path / "resolv.conf") == resolvers.parse("")
