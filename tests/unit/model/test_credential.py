"""One entry of `credentials`, short and long."""

import pytest
from pydantic import ValidationError

from autobot_mcp_bridge.model.credential import Credential
from autobot_mcp_bridge.model.server import ServerSpec

FORMS = [
    ("github", Credential(name="github")),
    ({"name": "github"}, Credential(name="github")),
    ({"name": "gcp", "as": "file"}, Credential.model_validate({"name": "gcp", "as": "file"})),
    ({"file": "/etc/acme/token"}, Credential(file="/etc/acme/token")),
]


def spec(entry):
    keys = {"name": "a", "command": ["/bin/cat"], "credentials": {"TOKEN": entry}}
    return ServerSpec.model_validate(keys)


@pytest.mark.parametrize(("written", "meant"), FORMS)
def test_each_form_is_read_and_written_so_that_it_means_the_same(written, meant):
    found = spec(written)

    assert found.credentials == {"TOKEN": meant}
    assert ServerSpec.model_validate(found.model_dump(mode="json", exclude_defaults=True)) == found


def test_the_short_form_stays_short():
    assert spec({"name": "github"}).model_dump(mode="json")["credentials"] == {"TOKEN": "github"}


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (3, "1 to 32 of a-z"),
        ("No", "1 to 32 of a-z"),
        ({}, "either name or file"),
        ({"name": "a", "file": "/b"}, "either name or file"),
        ({"name": "a", "vault": "x"}, "allowed are the keys name, file, as"),
        ({"name": "a", "as": "stdin"}, "'variable' or 'file'"),
        ({"file": "relative"}, "pattern"),
        ({"file": "/with a/blank"}, "pattern"),
    ],
)
def test_anything_else_is_refused_with_what_is_allowed(entry, told):
    with pytest.raises(ValidationError, match=told):
        spec(entry)


def test_a_file_has_an_id_that_no_variable_could_have():
    assert Credential(name="a").id("TOKEN") == "TOKEN"
    assert Credential.model_validate({"name": "a", "as": "file"}).id("TOKEN") == "TOKEN.file"
