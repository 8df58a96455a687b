"""What every test has: the fixture `need`, the list of what could not run, and patient properties."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["support.missing"]

# The machines are shared: how long an example takes says nothing about the code.
settings.register_profile(
    "shared", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared")
