"""What a definition asks for and plain child processes cannot give."""

import os

from autobot_mcp_bridge.model.server import ServerSpec


def unkept(spec: ServerSpec) -> list[str]:
    """One sentence for each; `check` and every start say them."""
    said = []
    if spec.url is None:  # the program of a remote server looks at addresses itself
        said = [f"network.mode {spec.network.mode} is not kept: it reaches what this host reaches"]
    if spec.paths.read or spec.paths.write:
        said.append("paths is not kept: file permissions alone decide what it reads and writes")
    if spec.profile is not None or spec.max_exposure is not None:
        said.append("profile and max_exposure are not kept: there is no sandbox")
    said += [
        f"limits.{name} is not kept: this runtime has no cgroup"
        for name in ("memory_high", "cpu", "cpu_weight", "io_weight", "tasks")
        if name in spec.limits.model_fields_set and getattr(spec.limits, name) is not None
    ]
    if spec.groups:
        said.append("groups is not kept: it runs without supplementary groups")
    if spec.run_as is not None and os.geteuid() != 0:
        said.append("run_as is not kept: it runs as the user that the proxy runs as")
    if spec.sessions == "isolated":
        said.append("sessions isolated: its processes have directories of their own, and one user")
    said.append("limits.memory is best effort: looked at twice a second, then SIGKILL")
    return said
