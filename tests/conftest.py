"""What every test has: `need`, the list of what could not run, the lab, and patient properties."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["support.missing", "support.containers"]

# The machines are shared: how long an example takes says nothing about the code.
settings.register_profile(
    "shared", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared")
