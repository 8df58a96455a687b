"""Each profile in each network mode that it can have, as definitions of servers."""

from dataclasses import dataclass
from typing import Any, get_args

from autobot_mcp_bridge.model.server import Network, ServerSpec
from autobot_mcp_bridge.units.packages.live import LIVE_PROFILES
from autobot_mcp_bridge.units.sandbox.profiles import PROFILES
from support.installed import spec_of

# Of networks that mean something in the lab only; the second is one of IANA's for the sinks of
# queries (AS112), so public as far as the internet goes, and nobody's.
LISTED = ("192.175.48.7", "2620:4f:8000::/64")
NAMED = ("api.example.com",)
MODES = get_args(Network.model_fields["mode"].annotation)


@dataclass(frozen=True, slots=True)
class Face:
    """What a server shows of itself to the kernel."""

    profile: str
    mode: str

    def __str__(self) -> str:
        return f"{self.profile}/{self.mode}"

    @property
    def is_online(self) -> bool:
        return self.mode in ("list", "internet")

    @property
    def exposure(self) -> float:
        """The most that `systemd-analyze security --offline=true` may give it."""
        if self.profile == "browser":
            return 1.7 if self.is_online else 1.2
        return 1.3 if self.is_online else 0.5

    def spec(self, *words: str, **keys: Any) -> ServerSpec:
        """A server that executes the words; npx and uvx are what lies at /opt/live/."""
        command = words or ("/bin/cat",)
        if self.profile in LIVE_PROFILES:
            command = (f"/opt/live/{self.profile}", *words)
        allowed = {"list": LISTED, "names": NAMED}.get(self.mode, ())
        network = {"mode": self.mode, "allow": allowed}
        name = f"{self.profile}-{self.mode}"
        return spec_of(name, *command, profile=self.profile, network=network, **keys)


FACES = [
    Face(profile, mode)
    for profile in PROFILES
    for mode in MODES
    if profile not in LIVE_PROFILES or mode not in ("none", "loopback")
]
