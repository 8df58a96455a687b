"""Which addresses a listed name may lead to."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.model.addresses import is_public, public

PUBLIC = (
    *("1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255"),
    *("172.32.0.0", "192.175.48.1", "223.255.255.255", "169.253.255.255", "198.17.255.255"),
    *("2620:4f:8000::1", "2a00:1450::1", "2400:cb00::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1"),
)
OTHERS = (
    *(
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.0.1",
    ),
    *(
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
    ),
    *("192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1"),
    *("239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1"),
    *(
        "2001:db8::1",
        "2001::1",
        "2001:20::1",
        "2002:a00:1::",
        "2002:101:101::",
        "3fff::1",
        "100::1",
    ),
    *("::ffff:10.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::10.0.0.1"),
    *("64:ff9b::169.254.169.254", "64:ff9b:1::1", "::10.0.0.1", "::1.1.1.1", "5f00::1", "4000::1"),
    "2620:4f:8000::1%1",
)


@pytest.mark.parametrize("text", PUBLIC)
def test_an_ordinary_address_of_the_internet_is_public(text):
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", OTHERS)
def test_an_address_with_a_special_purpose_is_not(text):
    assert not is_public(ipaddress.ip_address(text))


@given(st.ip_addresses())
def test_what_python_calls_private_is_never_public(address):
    assert not (is_public(address) and (address.is_private or address.is_multicast))


@given(st.ip_addresses(v=4))
def test_an_address_within_another_is_judged_as_it_is_by_itself(address):
    for prefix in ("::ffff:", "64:ff9b::"):
        assert is_public(ipaddress.ip_address(f"{prefix}{address}")) is is_public(address)


FOUR, SIX = (tuple(map(ipaddress.ip_network, networks)) for networks in public())


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6, network="2000::/3"))
def test_the_packet_filter_and_the_egress_proxy_mean_the_same_internet(address):
    networks = FOUR if address.version == 4 else SIX
    assert is_public(address) == any(address in network for network in networks)
