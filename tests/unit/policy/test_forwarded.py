"""Whose address is believed, and which part of what a client may have made up is not."""

import pytest

from autobot_mcp_bridge.policy.forwarded import MOST, Forwarded

TRUSTED = ("127.0.0.1", "10.0.0.0/8", "::1")
CLIENT = "203.0.113.7"
PROXY = "127.0.0.1"


@pytest.mark.parametrize(
    ("peer", "values", "client"),
    [
        (PROXY, [CLIENT], CLIENT),
        (PROXY, [], PROXY),
        (PROXY, [f"198.51.100.1, {CLIENT}"], CLIENT),
        (PROXY, ["198.51.100.1", CLIENT], CLIENT),  # two headers are one list
        (PROXY, [f"{CLIENT}, 10.1.2.3, 10.9.9.9"], CLIENT),
        (PROXY, ["10.1.2.3, 10.9.9.9"], "10.1.2.3"),
        (PROXY, [f"{CLIENT}:4711"], CLIENT),
        (PROXY, ["[2001:db8::7]:4711"], "2001:db8::7"),
        (PROXY, ["2001:db8::7"], "2001:db8::7"),
        (PROXY, [f"::ffff:{CLIENT}"], CLIENT),
        (f"::ffff:{PROXY}", [CLIENT], CLIENT),
        ("::1", [f" {CLIENT} "], CLIENT),
    ],
)
def test_the_last_address_that_is_no_trusted_proxys_is_the_clients(peer, values, client):
    assert Forwarded(TRUSTED).client(peer, values) == client


@pytest.mark.parametrize(
    "values", [[PROXY], ["10.0.0.1"], [f"{CLIENT}, {CLIENT}"], ["\x00"], [",,,"], ["for=1.2.3.4"]]
)
def test_what_others_than_trusted_proxies_say_is_not_believed(values):
    assert Forwarded(TRUSTED).client("198.51.100.9", values) == "198.51.100.9"
    assert Forwarded(()).client(PROXY, values) == PROXY


@pytest.mark.parametrize(
    "text",
    [
        "",
        "unknown",
        "_hidden",
        "1.2.3",
        "1.2.3.4.5",
        "999.1.1.1",
        "localhost",
        "1.2.3.4\n200 OK",
        "[::1",
        "1.2.3.4 200",
        "\u0661.2.3.4",
        "a" * 60_000,
    ],
)
def test_what_is_no_address_reaches_no_log_and_ends_the_way_back(text):
    assert Forwarded(TRUSTED).client(PROXY, [f"{CLIENT}, {text}"]) == PROXY


def test_a_list_without_end_is_looked_at_for_a_few_hops_only():
    hops = ",".join([CLIENT, *["10.0.0.1"] * (MOST + 1)])
    assert Forwarded(TRUSTED).client(PROXY, [hops]) == "10.0.0.1"


def test_a_connection_without_an_address_is_a_dash():
    assert Forwarded(TRUSTED).client(None, [CLIENT]) == "-"
