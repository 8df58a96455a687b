"""The weaker profiles, in which npx and uvx themselves run at each start, from a registry of ours."""

import pytest

from lab import recipe
from support.containers import properties
from support.made import (
    JS_SERVER,
    PY_SERVER,
    npx,
    product_with_registry,
    put_runners,
    uv_binds,
    uvx,
)

pytestmark = pytest.mark.lab

WITHIN = 90.0  # seconds for a first call, which installs the package


@pytest.fixture(scope="module", params=recipe.SUITES)
def live(request, lab, need):
    suite = request.param
    name = f"live-{suite}"
    made = product_with_registry(lab, suite, name, need, binds=uv_binds(need), loopback=False)
    with made as product:
        put_runners(product.container)
        yield product


@pytest.mark.parametrize("profile", ["npx", "uvx"])
async def test_a_live_profile_installs_at_its_start_and_nothing_is_in_the_store(live, profile):
    registry, name = live.registry, f"now-{profile}"
    registry.add_npm(name, ["1.0.0"], JS_SERVER)
    registry.add_pypi(name, ["1.0.0"], PY_SERVER)
    command = npx if profile == "npx" else uvx
    env = {**registry.environ, "npm_config_fund": "false"}
    timeouts = {"start": "90s", "call": "90s"}
    # The registry is a private address, which the internet is without.
    network = {"mode": "list", "allow": ["10.88.77.0/24"]}
    settings = {"profile": profile, "env": env, "timeouts": timeouts, "network": network}
    live.write_servers({**command(name, name), **settings})
    await live.applied(name)

    async with live.session(name) as client:
        assert await client.text("version", within=WITHIN) == "1.0.0"
        unit = f"autobot-mcp-bridge@{name}.service"
        shown = properties(live.container, unit, "ActiveState", "PrivateNetwork", "DynamicUser")
        assert shown == {"ActiveState": "active", "PrivateNetwork": "no", "DynamicUser": "yes"}
    kind = "npm" if profile == "npx" else "pypi"
    there = f"/var/lib/mcp-bridge/packages/{kind}"
    assert name not in live.container.run("ls", there).out
    said = live.container.run("mcp-bridge", "apply").err
    assert (
        f"{name}: profile {profile} is weaker: each start runs what the registry then has" in said
    )
    assert f"profile {profile} is weaker" in live.container.run("mcp-bridge", "check").err
    assert live.container.run("mcp-bridge", "outdated").status == 0
