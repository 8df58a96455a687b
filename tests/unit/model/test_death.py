"""The sentence about a server's end."""

from autobot_mcp_bridge.model.death import QUOTED, Death, DeathCause


def test_a_crash_is_told_with_what_the_server_last_said():
    death = Death(DeathCause.EXIT, 3, last_words=("starting", "FATAL: no API key"))

    assert death.describe() == "it exited with status 3; it last said: FATAL: no API key"


def test_what_it_last_said_is_quoted_in_part():
    death = Death(DeathCause.EXIT, 3, last_words=("x" * 4000,))

    assert len(death.describe()) < QUOTED + 100


def test_an_end_that_was_asked_for_quotes_nothing():
    death = Death(DeathCause.EXIT, 0, last_words=("bye",), asked=True)

    assert death.describe() == "it exited with status 0"
