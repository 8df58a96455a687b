"""Which addresses are the internet, and what a list of addresses may name."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.model.addresses import listed, public

NETWORKS = [ipaddress.ip_network(text) for line in public() for text in line]
# Global by the registry, but carriers of other addresses, or of services of their own.
LEFT_OUT = [ipaddress.ip_network(text) for text in ("192.0.0.0/24", "192.88.99.0/24", "2001::/23")]


def is_public(address):
    return any(address in network for network in NETWORKS if network.version == address.version)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "100.64.0.1",
            "100.100.100.200",
        ),
        *("127.0.0.1", "0.0.0.0", "169.254.169.254", "168.63.129.16", "198.18.0.1", "203.0.113.1"),
        *("224.0.0.251", "239.1.1.1", "240.0.0.1", "255.255.255.255"),
        *("::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:8.8.8.8"),
        *("2002:a00:1::", "2001:0:1::", "64:ff9b::a00:1", "2001:db8::1", "3fff::1", "4000::1"),
    ],
)
def test_what_is_private_local_or_special_is_not_the_internet(text):
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "1.0.0.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
        ),
        *("168.63.129.15", "168.63.129.17", "172.15.255.255", "172.32.0.0", "223.255.255.255"),
        *("2001:200::", "2001:db7:ffff::", "2001:db9::", "2003::", "2620:4f:8000::1", "3ffe::"),
    ],
)
def test_what_lies_beside_them_is(text):
    assert is_public(ipaddress.ip_address(text))


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6, network="2000::/3") | st.ip_addresses(v=6))
def test_an_address_is_public_just_when_python_knows_it_as_global(address):
    expected = address.is_global and not (address.is_multicast or address.is_reserved)
    others = any(address in net for net in LEFT_OUT if net.version == address.version)
    allocated = address.version == 4 or address in ipaddress.ip_network("2000::/3")
    tunnel = address.version == 6 and (address.sixtofour or address.teredo) is not None
    azure = str(address) == "168.63.129.16"
    documentation = address.version == 6 and address in ipaddress.ip_network("3fff::/20")
    special = others or tunnel or azure or documentation

    assert is_public(address) == (expected and allocated and not special)


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("192.0.2.7", "192.0.2.7/32"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("127.0.0.1", "127.0.0.1/32"),
        ("127.0.0.0/8", "127.0.0.0/8"),
        ("169.254.169.254", "169.254.169.254/32"),
        ("2001:db8::/32", "2001:db8::/32"),
        ("::1", "::1/128"),
    ],
)
def test_an_entry_of_a_list_is_an_address_or_a_network(text, network):
    assert str(listed(text)) == network


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("", "allowed is an address or a network"),
        ("example.org", "allowed is an address or a network"),
        ("10.0.0.1/8", "allowed is an address or a network"),
        ("10.0.0.1:80", "allowed is an address or a network"),
        ("any", "allowed is an address or a network"),
        ("fe80::1%eth0", "a scope"),
        ("::ffff:10.0.0.1", "not mapped into IPv6"),
        ("0.0.0.0/0", "it holds 127.0.0.0/8"),
        ("169.0.0.0/8", "it holds 169.254.0.0/16"),
        ("::/0", "it holds ::1/128"),
        ("fe00::/8", "it holds fe80::/10"),
    ],
)
def test_anything_else_is_refused_with_what_is_allowed(text, clause):
    with pytest.raises(ValueError, match=clause):
        listed(text)
