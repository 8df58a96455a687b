"""Quantities as people read them."""

import pytest

from autobot_mcp_bridge.cli.shown import show_bytes, show_seconds


@pytest.mark.parametrize(
    ("number", "text"),
    [(None, "-"), (0, "0B"), (1023, "1023B"), (1024, "1.0K"), (55_000_000, "52.5M"), (3 << 40, "3072.0G")],
)  # fmt: skip
def test_bytes_have_the_largest_unit_that_fits(number, text):
    assert show_bytes(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0, "0.0s"), (0.44, "0.4s"), (59.6, "1m"), (303, "5m 3s"), (93_784, "1d 2h"), (86_400, "1d")],
)  # fmt: skip
def test_seconds_have_the_two_largest_units(seconds, text):
    assert show_seconds(seconds) == text
