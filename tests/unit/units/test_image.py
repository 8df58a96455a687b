"""A root of its own: what it changes in a unit, and what is said of one that does not do."""

import pytest

from autobot_mcp_bridge.config.problem import json_path
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.server import Root, ServerSpec
from autobot_mcp_bridge.units.render import drop_in
from autobot_mcp_bridge.units.sandbox import image, image_look
from autobot_mcp_bridge.units.sandbox.image_look import Entry, Roots, Seen
from rules.tree import ROOT

PROGRAM, FILE, FOLDER, NONE = (
    Entry(exists=True, is_directory=False, executable=True),
    Entry(exists=True, is_directory=False, executable=False),
    Entry(exists=True, is_directory=True, executable=True),
    Entry(exists=False, is_directory=False, executable=False),
)


def spec(*command, root=None, **keys):
    root = {"image": "/srv/a b%.squashfs"} if root is None else root
    words = command or ("/usr/bin/jq",)
    return ServerSpec.model_validate({"name": "files", "command": words, "root": root, **keys})


def lines(definition):
    return drop_in(definition, Command(definition.command)).splitlines()


def looked(definition, entries, *others):
    """What apply would make of the server, had its root these entries and nothing else."""

    def look(root, paths):
        return Seen("", {path: entries.get(path, NONE) for path in paths})

    roots = Roots((definition, *others), look)
    return roots.command(definition).argv, list(roots.refusals(definition))


@pytest.mark.parametrize(
    ("root", "line"),
    [
        ({"image": "/srv/a b%.squashfs"}, "RootImage=/srv/a b%%.squashfs"),
        ({"directory": "/srv/tools"}, "RootDirectory=/srv/tools"),
    ],
)
def test_a_root_is_named_and_the_launcher_bound_into_it(root, line):
    found = lines(spec(root=root))

    assert line in found
    assert "BindReadOnlyPaths=/usr/lib/mcp-bridge/launch.py:/run/mcp-bridge/launch.py" in found
    assert 'ExecStart=:/usr/bin/python3 -I -S /run/mcp-bridge/launch.py "/usr/bin/jq"' in found
    assert "RootDirectoryStartOnly=yes" in found


def test_the_server_s_own_places_are_meant_inside_and_not_executable_there():
    found = lines(spec(paths={"write": ["/srv/given"]}))
    begin = found.index("NoExecPaths=")

    for path in ("/var/lib/mcp-bridge/default/-/files", "/srv/given"):
        assert found.index(f'NoExecPaths="+{path}"') > begin
    assert all("+" in line for line in found if line.startswith(("NoExecPaths=+", 'ExecPaths="')))


def test_the_end_is_recorded_by_the_template_s_own_command_outside_of_the_root():
    unit = (ROOT / "templates" / "autobot-mcp-bridge@.service").read_text("utf-8").splitlines()
    (command,) = [line for line in unit if line.startswith("ExecStopPost=")]
    found = [line for line in lines(spec()) if line.startswith("ExecStopPost=")]

    leave = "-+/usr/bin/nsenter --target 1 --mount -- /"
    assert found == ["ExecStopPost=", command.replace("-+/", leave)]


def test_a_server_in_the_host_s_root_has_nothing_of_this():
    text = drop_in(spec().model_copy(update={"root": None}), Command(("/usr/bin/jq",)))

    assert "Root" not in text
    assert "TemporaryFileSystem" not in text
    assert '"+' not in text


def test_what_is_shared_below_srv_needs_no_mount_point_and_elsewhere_one():
    definition = spec(paths={"read": ["/srv/a", "/opt/b"], "write": ["/home/c", "/srv"]})
    points = {json_path(loc): path for loc, path in image.mount_points(definition)}

    assert points == {"$.paths.read[1]": "/opt/b", "$.paths.write[1]": "/srv"}
    assert "TemporaryFileSystem=/srv:ro,noexec" in lines(spec(paths={"read": ["/srv/a"]}))
    assert not any("/srv:" in line for line in lines(spec(paths={"read": ["/srv"]})))


@pytest.mark.parametrize(("mode", "resolver"), [("none", None), ("list", image.RESOLVER)])
def test_a_server_that_resolves_names_gets_the_host_s_resolver(mode, resolver):
    network = {"mode": mode, "allow": ["192.0.2.0/24"] if mode == "list" else []}
    found = image.image_of(spec(network=network))

    assert found.resolver == resolver
    assert [p for _, p in image.mount_points(spec(network=network))] == [resolver] * bool(resolver)


@pytest.mark.parametrize("path", ["/", "/srv/../etc", "/srv/a\\"])
def test_a_root_that_no_unit_could_have_is_refused(path):
    with pytest.raises(UsageError, match=r"\$\.root\.image: allowed|\$\.root\.image: a path"):
        lines(spec(root={"image": path}))


@pytest.mark.parametrize("root", [{}, {"image": "/a", "directory": "/b"}, {"image": "a"}])
def test_a_root_is_a_directory_or_an_image(root):
    with pytest.raises(ValueError, match=r"allowed is either directory or image|should match"):
        spec(root=root)


def test_a_bare_name_is_the_root_s_own_program():
    programs = {"/usr/bin/jq": PROGRAM, "/bin/jq": PROGRAM, "/usr/local/bin/jq": FILE}

    assert looked(spec("jq", "."), programs) == (("/usr/bin/jq", "."), [])


@pytest.mark.parametrize(
    ("keys", "entries", "words"),
    [
        ({}, {}, ["$.command[0]", "the root has no /usr/bin/jq"]),
        ({}, {"/usr/bin/jq": FILE}, ["$.command[0]", "chmod o+rx"]),
        ({}, {"/usr/bin/jq": FOLDER}, ["$.command[0]", "/usr/bin/jq"]),
        (
            {"cwd": "/data"},
            {"/usr/bin/jq": PROGRAM, "/data": FILE},
            ["$.cwd", "no directory /data"],
        ),
        (
            {"paths": {"read": ["/opt/b"]}},
            {"/usr/bin/jq": PROGRAM},
            ["$.paths.read[0]", "mkdir -p /opt/b"],
        ),
    ],
)
def test_what_the_root_lacks_is_told_with_its_place(keys, entries, words):
    _, (said,) = looked(spec(**keys), entries)

    assert all(word in said for word in words)


@pytest.mark.parametrize("cwd", ["/srv/a/b", "/var/lib/mcp-bridge/default/-/files/sub"])
def test_a_working_directory_that_is_bound_is_not_looked_for(cwd):
    definition = spec(cwd=cwd, paths={"read": ["/srv/a"]})

    assert looked(definition, {"/usr/bin/jq": PROGRAM})[1] == []


def test_a_root_is_looked_at_once_for_all_its_servers():
    asked = []

    def look(root, paths):
        asked.append((root.path, set(paths)))
        return Seen("", dict.fromkeys(paths, PROGRAM))

    here = spec(), spec("/bin/a"), spec(root={"directory": "/srv/other"})
    roots = Roots(here, look)
    for one in (*here, *here):
        roots.command(one)
        assert list(roots.refusals(one)) == []

    assert asked == [
        ("/srv/a b%.squashfs", {"/usr/bin/jq", "/bin/a"}),
        ("/srv/other", {"/usr/bin/jq"}),
    ]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"3 8\n1 0 1\n", "is 3.8; allowed is 3.9 or newer"),
        (b"3 11\n1 0 1\n", ""),
    ],
)
def test_an_answer_is_read(answer, why):
    assert image_look._read(answer, ["/bin/a"]).why.endswith(why)


@pytest.mark.parametrize("answer", [b"", b"3 11\n", b"3 11\n1 0\n", b"3 11\nx y z\n", b"\xff\n"])
def test_an_answer_of_another_form_is_none(answer):
    assert image_look._read(answer, ["/bin/a"]) is None


def test_a_stranger_s_program_can_fill_no_more_of_a_disk_than_is_read_of_it():
    assert int(image_look.SANDBOX["LimitFSIZE"].removesuffix("M")) << 20 >= image_look.MOST_ANSWER


def test_a_root_is_first_looked_at_from_outside(tmp_path, monkeypatch):
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"")
    theirs.chmod(0o666)
    everybodys = tmp_path / "everybodys"
    everybodys.mkdir()
    everybodys.chmod(0o777)
    (everybodys / "image").touch(0o644)
    monkeypatch.setattr(image_look, "others_place", lambda file: str(file.parent))

    for root, word in (
        (Root(image=str(tmp_path / "none")), "No such file"),
        (Root(image=str(tmp_path)), "root.directory"),
        (Root(image=str(theirs)), "chmod 644"),
        (Root(directory=str(theirs)), "root.image"),
        (Root(directory=str(everybodys)), "chmod o-w"),
        (Root(image=str(everybodys / "image")), f"others may write {everybodys}"),
    ):
        assert word in image_look.look(root, ()).why
