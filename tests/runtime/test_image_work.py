"""Tests workspaces in container images: what tools see, what stays, forks, and images that are written."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support import environments
from support.command_line import handrail
from support.layers import deny_user_namespaces, needs_overlays
from support.oci_images import layer, layout, symlink
from support.ordinary_user import as_ordinary_user

from handrail import CallError, ImageError, Snapshot, Workspace, WorkspaceError
from handrail.kernel.doctor.checks import examine
from handrail.kernel.layers.overlay import refusal
from handrail.surfaces.doctor_report import machine_findings

pytestmark = [needs_overlays, pytest.mark.sandbox]

TREE = (
    "cd / && find . -xdev \\( -path ./proc -o -path ./dev -o -path ./tmp -o -name resolv.conf -o -name hosts \\) -prune"
    ' -o -print | sort | while read f; do stat -c \'%n %F %a\' "$f"; test -f "$f" && md5sum "$f"; done'
)


@pytest.fixture
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    return environments.busybox(environments.shared_place(tmp_path_factory))


@pytest.fixture
def debian(tmp_path_factory: pytest.TempPathFactory) -> str:
    return environments.debian(environments.shared_place(tmp_path_factory))


def sh(workspace: Workspace, text: str) -> str:
    ran = workspace.exec(["sh", "-c", text])
    return (ran.stdout + ran.stderr).decode()


def test_image_programs_and_configuration_hold_for_commands(debian: str) -> None:
    with Workspace(image=debian, approve="auto") as workspace:
        assert workspace.root == "/testbed"
        assert sh(workspace, "pwd; echo $GREETING; id -u") == "/testbed\nfrom the image\n0\n"
        assert sh(workspace, "python3 -c 'print(6 * 7)'; git --version").startswith("42\ngit version")
        commit = "git init -q . && echo x > f && git add f && git -c user.name=a -c user.email=b commit -qm m"
        assert sh(workspace, f"{commit} && git log --oneline").endswith(" m\n")


def test_image_tools_and_commands_see_one_tree(image: str) -> None:
    with Workspace(image=image, approve="auto") as workspace:
        assert workspace.call("file", "file.write", {"path": "a.txt", "content": "from a tool\n"}).success
        assert sh(workspace, "cat a.txt; echo from a command > b.txt") == "from a tool\n"
        assert "from a command" in workspace.call("file", "file.read", {"path": "b.txt"}).text
        assert "b.txt" in workspace.call("file", "file.search", {"pattern": "a command"}).text
        assert [(each.path, each.kind) for each in workspace.changes()] == [("a.txt", "created"), ("b.txt", "created")]
        workspace.history().undo()
        assert not workspace.call("file", "file.read", {"path": "b.txt"}).success


def test_image_shell_remembers_and_terminal_runs_without_bash(image: str) -> None:
    with Workspace(image=image, approve="auto") as workspace:
        assert workspace.call("claude", "bash", {"command": "cd /etc; x='a b'"}).success
        assert "/etc a b" in workspace.call("claude", "bash", {"command": "echo $PWD $x"}).text
        job = workspace.call("gemini-3", "run_shell_command", {"command": "echo job"})
        assert "job" in job.text


def test_image_whole_as_workspace_shows_one_tree_to_all_tools(image: str) -> None:
    with Workspace(image=image, workdir="/", approve="auto") as workspace:
        assert workspace.root == "/"
        assert sh(workspace, "pwd; echo made > /tmp/by-command; echo needle > /opt/f") == "/\n"
        assert "made" in workspace.call("gemini-3", "read_file", {"file_path": "/tmp/by-command"}).text
        assert workspace.call("claude-code", "Write", {"file_path": "/tmp/by-tool", "content": "tool\n"}).success
        assert workspace.call("claude", "bash", {"command": "cat /tmp/by-tool; cd /opt"}).text == "tool"
        assert workspace.call("claude-code", "Bash", {"command": "cd /etc; pwd"}).text == "/etc"
        for dialect, tool, params in (
            ("gemini", "glob", {"pattern": "opt/*"}),
            ("gemini-3", "glob", {"pattern": "/opt/*"}),
            ("claude-code", "Glob", {"pattern": "opt/*"}),
            ("claude-code", "Grep", {"pattern": "needle", "path": "/opt"}),
            ("claude-agent", "glob", {"pattern": "opt/*"}),
            ("claude-agent", "grep", {"pattern": "needle", "path": "/opt"}),
        ):
            found = workspace.call(dialect, tool, params).text
            assert "/opt/f" in found, (dialect, tool)
            assert "//" not in found, (dialect, tool)
        assert [each.path for each in workspace.changes()] == ["opt/f", "tmp/by-command", "tmp/by-tool"]


def test_image_changes_of_fork_are_those_since_image(image: str) -> None:
    with Workspace(image=image, workdir="/etc", approve="auto") as workspace:
        sh(workspace, "echo one > one; echo 1 > kept")
        with workspace.fork(1, running="end")[0] as fork:
            sh(fork, "rm one; echo two > two")
            assert [(each.path, each.kind) for each in fork.changes()] == [("kept", "created"), ("two", "created")]


def test_image_changes_name_files_of_directory_that_was_replaced(image: str) -> None:
    with Workspace(image=image, workdir="/", approve="auto") as workspace:
        assert sh(workspace, "rm -r /bin; mkdir /bin") == ""
        assert {"bin/sh", "bin/busybox"} <= {each.path for each in workspace.changes() if each.kind == "deleted"}


def test_image_changes_are_forgotten_unless_layer_is_named(image: str) -> None:
    for layered, kept in ((False, False), ("mine", True)):
        for seen in (False, kept):
            with Workspace(image=image, approve="auto", layered=layered) as workspace:
                assert (sh(workspace, "test -e /opt/new && echo there; touch /opt/new") == "there\n") is seen
    layers = Path(os.environ["HANDRAIL_STATE_DIR"]) / "layers"
    assert [path.name for path in layers.glob("*/named/*")] == ["mine"]


def test_image_forks_begin_alike_and_part(image: str) -> None:
    with Workspace(image=image, approve="auto") as workspace:
        sh(workspace, "echo one > /opt/f; rm /bin/vi")
        first, second = workspace.fork(2, running="end")
        with first, second:
            assert sh(first, "cat /opt/f; test -e /bin/vi || echo gone; echo two > /opt/f") == "one\ngone\n"
            assert sh(second, "cat /opt/f") == "one\n"
            [third] = first.fork(1, running="end")
            with third:
                assert sh(third, "cat /opt/f") == "two\n"
        assert sh(workspace, "cat /opt/f") == "one\n"


def test_image_snapshot_opens_with_whole_environment(image: str, tmp_path: Path) -> None:
    with Workspace(image=image, workdir="/srv", approve="auto") as workspace:
        sh(workspace, "echo one > /opt/f; rm /bin/vi; rm -r /var; mkdir /var; chmod 700 /var")
        assert workspace.call("file", "file.write", {"path": "a.txt", "content": "by a tool\n"}).success
        [fork] = workspace.fork(1, running="end")
        with fork:
            sh(fork, "echo two >> /opt/f")
            expected = sh(fork, TREE)
            fork.snapshot(running="end").save(tmp_path / "snapshot")
    snapshot = Snapshot.load(tmp_path / "snapshot")
    shutil.copytree(image.split(":")[1], tmp_path / "elsewhere")
    for place in (None, f"oci:{tmp_path}/elsewhere"):
        with Workspace.open(snapshot, image=place, approve="auto") as opened:
            assert opened.root == "/srv"
            assert sh(opened, TREE) == expected
            assert sh(opened, "cat /opt/f a.txt; test -e /bin/vi || echo gone") == "one\ntwo\nby a tool\ngone\n"
            assert [change.path for change in opened.changes()] == ["a.txt"]
            opened.history().undo()
            assert opened.changes() == []
            with opened.fork(1, running="end")[0] as fork:
                assert sh(fork, "cat /opt/f") == "one\ntwo\n"
    assert not [*(Path(os.environ["HANDRAIL_STATE_DIR"]) / "layers").glob("*/named/*")]


def test_image_snapshot_over_something_else_is_refused(image: str, root: Path, tmp_path: Path) -> None:
    with Workspace(image=image) as workspace:
        of_image = workspace.snapshot()
    with Workspace(root, layered=True) as workspace:
        of_root = workspace.snapshot()
    other = layout(tmp_path / "i", layer(symlink("bin", "nowhere")))
    with pytest.raises(WorkspaceError, match="is not the image of the snapshot"):
        Workspace.open(of_image, image=other)
    with pytest.raises(WorkspaceError, match="the snapshot is of an image"):
        Workspace.open(of_image, root)
    with pytest.raises(WorkspaceError, match="the snapshot is of a directory"):
        Workspace.open(of_root, image=image)
    assert not [*(Path(os.environ["HANDRAIL_STATE_DIR"]) / "layers").glob("*/named/fork-*")]


def test_image_commit_gives_equal_tree(image: str, tmp_path: Path) -> None:
    change = (
        "echo new > f; ln f g; ln -s f l; mkdir -p d/e; chmod 700 d; rm /bin/vi; rm -r /opt; mkdir /opt; "
        "echo x > /opt/x; echo s > '/opt/with space'; chmod 444 f"
    )
    new = f"oci:{tmp_path}/made:v2"
    with Workspace(image=image, approve="auto") as workspace:
        sh(workspace, change)
        [fork] = workspace.fork(1, running="end")
        with fork:
            sh(fork, "rm l; echo more > /opt/more")
            digest = fork.commit(new, running="end")
            expected = sh(fork, TREE)
    with Workspace(image=new, approve="auto") as workspace:
        assert sh(workspace, TREE) == expected
        assert "/opt/more" in expected
        assert "./bin/vi " not in expected
    index = json.loads((tmp_path / "made" / "index.json").read_text())
    assert [each["digest"] for each in index["manifests"]] == [digest]
    assert not [*(tmp_path / "made").glob(".handrail-*")]


@pytest.mark.skipif(shutil.which("skopeo") is None, reason="skopeo is not installed")
def test_image_commit_is_read_by_skopeo(image: str, tmp_path: Path) -> None:
    new = f"oci:{tmp_path}/made:v2"
    with Workspace(image=image, approve="auto") as workspace:
        sh(workspace, "echo new > f")
        workspace.commit(new, running="end")
    copied = ["skopeo", "--insecure-policy", "copy", new, f"docker-archive:{tmp_path}/made.tar:made:v2"]
    subprocess.run(copied, check=True, capture_output=True)
    with Workspace(image=f"docker-archive:{tmp_path}/made.tar", approve="auto") as workspace:
        assert sh(workspace, "cat f; echo $GREETING") == "new\nfrom the image\n"


def test_image_commit_of_name_that_would_delete_is_refused(image: str, tmp_path: Path) -> None:
    with Workspace(image=image, approve="auto") as workspace:
        sh(workspace, "touch .wh.x")
        with pytest.raises(ImageError, match="would delete a file"):
            workspace.commit(f"oci:{tmp_path}/made:v2", running="end")
    assert not (tmp_path / "made" / "index.json").exists()


@pytest.mark.parametrize(("limit", "why"), [("oci_depth", "more than 1 directories deep"), ("oci_layers", "1 layers")])
def test_image_commit_that_could_not_be_opened_is_refused(limit: str, why: str, image: str, tmp_path: Path) -> None:
    with Workspace(image=image, approve="auto", limits={"oci_layers": 1}):
        pass  # its layers are unpacked with the usual limits
    with Workspace(image=image, approve="auto", limits={limit: 1}) as workspace:
        workspace.write_bytes("d/f", b"x")
        with pytest.raises(ImageError, match=why):
            workspace.commit(f"oci:{tmp_path}/made:v2")
    assert not (tmp_path / "made" / "index.json").exists()


def test_image_commit_replaces_damaged_blob_in_layout(image: str, tmp_path: Path) -> None:
    new, blobs = f"oci:{tmp_path}/made:v2", tmp_path / "made" / "blobs" / "sha256"
    with Workspace(image=image, approve="auto") as workspace:
        workspace.write_bytes("f", b"new")
        workspace.commit(new)
        for blob in blobs.iterdir():
            blob.write_bytes(bytes(blob.stat().st_size))
        workspace.commit(new)
    with Workspace(image=new, approve="auto") as workspace:
        assert workspace.read_bytes("f") == b"new"


def test_image_commit_works_where_files_need_names(image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY | os.O_RDWR)  # as on a file system that has no such files
    with Workspace(image=image, approve="auto") as workspace:
        workspace.write_bytes("f", b"new")
        workspace.commit(f"oci:{tmp_path}/made:v2")
    with Workspace(image=f"oci:{tmp_path}/made:v2", approve="auto") as workspace:
        assert workspace.read_bytes("f") == b"new"
    assert {*os.listdir(tmp_path / "made")} == {"oci-layout", "index.json", "blobs"}


def without_namespaces(root: str) -> dict[str, str]:
    """Try to work in an image as a user who may not make user namespaces."""
    image = layout(Path(root, "i"), layer(symlink("bin", "nowhere")))
    deny_user_namespaces()
    refusal.cache_clear()  # as in a new process
    found = {}
    for name, settings in (("strict", {}), ("reduced", {"allow_reduced": True})):
        try:
            Workspace(image=image, **settings).close()  # type: ignore[arg-type]
        except ImageError as error:
            found[name] = str(error)
    found["doctor"] = next(each.says for each in machine_findings(examine(root)) if each.name == "layers")
    return found


def test_image_without_user_namespaces_is_refused_with_reason() -> None:
    found = as_ordinary_user(without_namespaces)
    assert found["strict"] == found["reduced"]
    assert found["strict"].startswith("this machine cannot use images: the system allows no user namespaces")
    assert "images are refused: the system allows no user namespaces" in found["doctor"]


def test_image_methods_of_wrong_workspace_say_why(image: str, root: Path) -> None:
    with Workspace(image=image) as workspace, pytest.raises(CallError, match="no directory to apply"):
        workspace.apply()
    with Workspace(root, layered=True) as workspace, pytest.raises(CallError, match="not a container image"):
        workspace.commit("oci:x:y")
    for given in ({}, {"root": root, "image": image}, {"root": root, "workdir": "/x"}):
        with pytest.raises(WorkspaceError, match="either a directory, or image="):
            Workspace(**given)  # type: ignore[arg-type]


def test_image_without_shell_says_what_is_missing(tmp_path: Path) -> None:
    name = layout(tmp_path / "i", layer(symlink("bin", "nowhere")))
    with Workspace(image=name, workdir="/work", approve="auto") as workspace:
        ran = workspace.call("codex", "shell", {"command": "true"})
        assert ran.error is not None
        assert "/bin/sh" in ran.error.message


def test_image_option_of_command_line_works(image: str) -> None:
    done = handrail("call", "--image", image, "--approve", "auto", "--dialect", "codex", "shell", "command=pwd; id -u")
    assert "/testbed" in done.stdout, done.stderr
    both = handrail("call", "--image", image, "--root", ".", "file.list")
    assert (both.returncode, "not both" in both.stderr) == (2, True)
    alone = handrail("call", "--workdir", "/x", "file.list")
    assert (alone.returncode, "--workdir needs --image" in alone.stderr) == (2, True)
