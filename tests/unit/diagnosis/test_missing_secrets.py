"""What doctor says of a secret that is not there."""

import pytest

from autobot_mcp_bridge.diagnosis import needs
from autobot_mcp_bridge.diagnosis.original import Original
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.manager import UnitFacts

SPEC = ServerSpec.model_validate({"name": "files", "command": ["/usr/bin/true"]})


@pytest.mark.parametrize(
    ("why", "mend"),
    [
        (
            "$.credentials.KEY: there is no secret key; run: mcp-bridge secret set key",
            "run: mcp-bridge secret set key",
        ),
        ("$.credentials.KEY: /etc/acme: No such file or directory", "run: mcp-bridge apply"),
    ],
)
def test_a_secret_that_apply_missed_is_no_fault_of_the_program(why, mend):
    check = needs.missing_credential(why)

    assert check.code == "no_credential"
    assert "$.credentials.KEY" in check.text
    assert check.mend.endswith(mend)


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/etc/mcp-bridge/credstore.encrypted/no-such", "mcp-bridge secret set no-such"),
        ("/etc/credstore/no-such", "mcp-bridge secret set no-such"),
        ("/no/such/file", "install -m 0600 /dev/stdin /no/such/file"),
    ],
)
def test_a_secret_that_went_later_comes_back_where_it_was(path, command):
    unit = f"[Service]\nLoadCredential=KEY:{path}\n"
    original = Original(SPEC, ("/usr/bin/true",), UnitFacts(), (unit,), {})
    (check,) = needs.of_credentials(original)

    assert check.code == "no_credential"
    assert check.mend.endswith(command)
