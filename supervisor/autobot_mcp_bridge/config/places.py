"""Where everything lies: the three directories of one proxy, and the names below them."""

import os
import pwd
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import ServerId

PRODUCT = "mcp-bridge"
ENV_CONFIG_DIR = "MCP_BRIDGE_CONFIG_DIR"
ENV_STATE_DIR = "MCP_BRIDGE_STATE_DIR"
ENV_RUNTIME_DIR = "MCP_BRIDGE_RUNTIME_DIR"
# A tenant's directory lies beside these in the state directory (ServerId.directory); the other
# names there (tokens.d, headers.d, audit.d) hold a dot, which no tenant can.
RESERVED_TENANTS = frozenset({"packages", "run"})


@dataclass(frozen=True, slots=True)
class Places:
    """The three directories; nothing here touches the disk."""

    config_dir: Path
    state_dir: Path
    runtime_dir: Path

    @property
    def servers_json(self) -> Path:
        return self.config_dir / "servers.json"

    @property
    def servers_d(self) -> Path:
        return self.config_dir / "servers.d"

    @property
    def manifests_d(self) -> Path:
        """One file per agent type; where it is, a type without one may do nothing."""
        return self.config_dir / "manifests.d"

    @property
    def host_toml(self) -> Path:
        return self.config_dir / "host.toml"

    @property
    def encrypted_credentials(self) -> Path:
        """One file for each credential, as systemd-creds(1) encrypts them."""
        return self.config_dir / "credstore.encrypted"

    @property
    def accepted(self) -> Path:
        """What `mcp-bridge apply` has put to use last."""
        return self.state_dir / "accepted.json"

    @property
    def refused(self) -> Path:
        """What `mcp-bridge apply` has refused last, and why; empty or away: nothing."""
        return self.state_dir / "refused.txt"

    @property
    def egress(self) -> Path:
        """What each server with network mode names may reach; apply writes it."""
        return self.state_dir / "egress.json"

    @property
    def egress_dir(self) -> Path:
        """The egress proxy's own, which the proxy can read."""
        return self.runtime_dir / "egress"

    @property
    def tokens_d(self) -> Path:
        """One file of token digests per server; the directory is 0700."""
        return self.state_dir / "tokens.d"

    @property
    def keys_d(self) -> Path:
        """One file of API keys' digests per tenant; the directory is 0700."""
        return self.state_dir / "keys.d"

    @property
    def key_uses(self) -> Path:
        """When each key was used last, in a directory that the proxy may write."""
        return self.state_dir / "used.d" / "keys.json"

    @property
    def tools_d(self) -> Path:
        """One file per server of the tools that have been accepted: the proxy's own, 0700."""
        return self.state_dir / "tools.d"

    @property
    def headers_d(self) -> Path:
        """One 0600 file per server, named by its instance, for `curl -H @FILE`; 0700."""
        return self.state_dir / "headers.d"

    @property
    def packages(self) -> Path:
        return self.state_dir / "packages"

    @property
    def control_socket(self) -> Path:
        return self.runtime_dir / "control.sock"

    @property
    def endpoint_file(self) -> Path:
        return self.runtime_dir / "endpoint.json"

    @property
    def disk(self) -> Path:
        """How much of the disk each server takes, as was measured last."""
        return self.state_dir / "disk.json"

    @property
    def audit_d(self) -> Path:
        """The lines of all calls: the proxy's own, 0700."""
        return self.state_dir / "audit.d"

    @property
    def open_calls(self) -> Path:
        """How many calls the running proxy has begun and not recorded; gone with the boot."""
        return self.runtime_dir / "proxy" / "open-calls"

    @property
    def enforced(self) -> Path:
        """Which promises of the sandbox this host keeps, as root has tried since the boot."""
        return self.runtime_dir / "enforced.json"

    @property
    def tls_pem(self) -> Path:
        """Key and certificate of the clients' port as root has taken them for the proxy."""
        return self.runtime_dir / "tls.pem"

    def server_dir(self, server: ServerId) -> Path:
        """A server's own directory, 0700 (NV-04)."""
        return self.state_dir / server.directory


def default_places(environ: Mapping[str, str] | None = None, *, uid: int | None = None) -> Places:
    """The places of this user: the system's for root, XDG's for anyone else."""
    return resolve_places(environ=environ, uid=uid)


def resolve_places(
    *,
    config_dir: str | Path | None = None,
    state_dir: str | Path | None = None,
    runtime_dir: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    uid: int | None = None,
) -> Places:
    """Each directory by the first that is given: argument, MCP_BRIDGE_*_DIR, the user's default.

    Relative ones are made absolute: a server's working directory is not the caller's.

    Raises:
        UsageError: one is missing and the user has no home directory.
    """
    env = os.environ if environ is None else environ
    user = os.geteuid() if uid is None else uid
    config = config_dir or env.get(ENV_CONFIG_DIR)
    state = state_dir or env.get(ENV_STATE_DIR)
    runtime = runtime_dir or env.get(ENV_RUNTIME_DIR)
    if user == 0:
        config = config or Path("/etc", PRODUCT)
        state = state or Path("/var/lib", PRODUCT)
        runtime = runtime or Path("/run", PRODUCT)
    else:
        config = config or _xdg(env, user, "XDG_CONFIG_HOME", ".config") / PRODUCT
        state = state or _xdg(env, user, "XDG_STATE_HOME", ".local/state") / PRODUCT
        if not runtime:
            base = env.get("XDG_RUNTIME_DIR")
            runtime = Path(base, PRODUCT) if base else Path(state, "run")
    return Places(_absolute(config), _absolute(state), _absolute(runtime))


def _xdg(env: Mapping[str, str], user: int, name: str, fallback: str) -> Path:
    # The XDG Base Directory specification has relative values ignored.
    value = env.get(name, "")
    return Path(value) if value.startswith("/") else Path(_home(env, user), fallback)


def _home(env: Mapping[str, str], user: int) -> str:
    """As the user's database has it where HOME is not set, as in a unit or a cron job."""
    home = env.get("HOME", "")
    if not home.startswith("/"):
        with suppress(KeyError):
            home = pwd.getpwuid(user).pw_dir
    if not home.startswith("/"):
        raise UsageError(
            "HOME is not set, and this user has no home directory: give --config-dir, "
            "--state-dir and --runtime-dir"
        )
    return home


def _absolute(path: str | Path) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path)))  # noqa: PTH100, PTH111 - no symlinks resolved
