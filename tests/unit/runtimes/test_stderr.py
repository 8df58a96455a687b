"""The sentences of what the subprocess runtime does not keep."""

from autobot_mcp_bridge.runtimes.subprocess.unkept import unkept

from .conftest import spec


def test_only_what_the_definition_relies_on_is_said_not_to_be_kept():
    plain = unkept(spec())
    full = unkept(
        spec(
            paths={"read": ["/srv"]},
            profile="node",
            groups=["acme"],
            limits={"cpu": "50%", "tasks": 8, "memory": "64M", "cpu_weight": 50, "io_weight": None},
            network={"mode": "internet"},
        )
    )

    assert [sentence.split()[0] for sentence in plain] == ["network.mode", "limits.memory"]
    assert [sentence.split()[0] for sentence in full] == [
        "network.mode",
        "paths",
        "profile",
        "limits.cpu",
        "limits.cpu_weight",
        "limits.tasks",
        "groups",
        "limits.memory",
    ]
