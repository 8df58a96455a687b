"""The profiles in which npx or uvx itself runs at each start: what they are, what they give up."""

from pathlib import PurePosixPath

from autobot_mcp_bridge.model.server import ServerSpec

LIVE_PROFILES = frozenset({"npx", "uvx"})
# Below the server's own cache directory, from which its unit may execute.
_CACHES = {"npx": ("npm_config_cache", "npm"), "uvx": ("UV_CACHE_DIR", "uv")}
_SETTINGS = {
    "npx": {"npm_config_update_notifier": "false"},
    "uvx": {"UV_PYTHON_DOWNLOADS": "never"},
}


def is_live(spec: ServerSpec) -> bool:
    return spec.profile in LIVE_PROFILES


def misused(spec: ServerSpec) -> str | None:
    """What is wrong with the command of a live profile, as a clause."""
    if spec.profile is None or not is_live(spec):
        return None
    if spec.command and PurePosixPath(spec.command[0]).name == spec.profile:
        return None
    return f"{spec.profile} is for a command that begins with {spec.profile}"


def weaker(spec: ServerSpec) -> str | None:
    """What a live profile gives up, in a sentence; None for the others."""
    if not is_live(spec):
        return None
    return (
        f"profile {spec.profile} is weaker: each start runs what the registry then has, with a "
        "network, and may execute from its own cache directory"
    )


def variables(spec: ServerSpec, cache: str) -> dict[str, str]:
    """What npx or uvx are told in a unit, whose own cache directory is `cache`."""
    if spec.profile is None or not is_live(spec):
        return {}
    name, folder = _CACHES[spec.profile]
    return {name: f"{cache}/{folder}", **_SETTINGS[spec.profile]}
