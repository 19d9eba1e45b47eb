"""Tests layered workspaces: what they change, what reaches the root, and what forks share."""

import os
import pickle
import select
import stat
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from support.layers import deny_user_namespaces, needs_overlays
from support.ordinary_user import as_ordinary_user

from handrail import CallError, DeniedError, Question, Snapshot, ToolResult, Verdict, Workspace, WorkspaceError
from handrail.kernel.layers.layer_store import LayerStore

pytestmark = [needs_overlays, pytest.mark.sandbox]


@pytest.fixture
def tree(root: Path) -> Path:
    """Return a root with a few files, in a directory whose name has a space."""
    place = root / "my project"
    (place / "sub").mkdir(parents=True)
    (place / "a.txt").write_text("old\n")
    (place / "sub/b.txt").write_text("b\n")
    (place / "run").write_text("#!/bin/sh\necho ran\n")
    (place / "run").chmod(0o755)
    (place / "link").symlink_to("a.txt")
    return place


def opened(tree: Path, layered: bool | str = True, **settings: Any) -> Workspace:
    return Workspace(tree, **({"approve": "auto", "layered": layered} | settings))


def sh(workspace: Workspace, text: str) -> str:
    ran = workspace.exec(["sh", "-c", text])
    return (ran.stdout + ran.stderr).decode()


def shape(tree: Path) -> dict[str, str | bytes]:
    found: dict[str, str | bytes] = {}
    for path in sorted(tree.rglob("*")):
        mode = f"{stat.S_IMODE(path.lstat().st_mode):o}"
        kind = os.readlink(path) if path.is_symlink() else "directory" if path.is_dir() else path.read_bytes()
        found[f"{path.relative_to(tree)} {mode}"] = kind
    return found


CHANGE = "echo new >a.txt; rm -r sub; echo n >n; mkdir -p d/e; ln -s n to-n; chmod -x run; rm link"


def test_layer_takes_changes_of_tools_and_commands_and_root_stays(tree: Path) -> None:
    before = shape(tree)
    with opened(tree) as workspace:
        sh(workspace, CHANGE)
        assert workspace.call("file", "file.write", {"path": "by/tool", "content": "t\n"}).success
        assert sh(workspace, f"pwd; cat a.txt by/tool '{tree}/n'") == f"{tree}\nnew\nt\nn\n"
        assert workspace.read_bytes("a.txt") == b"new\n"
        assert "by/tool" in str(workspace.call("file", "file.search", {"pattern": "t", "glob": "by/*"}).output)
        kinds = {change.path: change.kind for change in workspace.changes()}
    assert shape(tree) == before
    assert kinds == {
        "a.txt": "changed",
        "by": "created",
        "by/tool": "created",
        "d": "created",
        "d/e": "created",
        "link": "deleted",
        "n": "created",
        "run": "changed",
        "sub": "deleted",
        "sub/b.txt": "deleted",
        "to-n": "created",
    }


def test_layer_stays_for_later_and_names_are_independent(tree: Path) -> None:
    with opened(tree) as workspace:
        workspace.write_bytes("a.txt", b"1")
    with opened(tree, "other") as other, opened(tree) as workspace:
        assert other.read_bytes("a.txt") == b"old\n"
        assert (workspace.read_bytes("a.txt"), workspace.layer) == (b"1", "default")


def test_layer_that_is_open_is_refused_and_odd_name_too(tree: Path) -> None:
    with opened(tree), pytest.raises(WorkspaceError, match="open already"):
        opened(tree)
    for name in ("../x", "", " ", "a/b", "a" * 65):
        with pytest.raises(WorkspaceError, match="not a valid name of a layer") if name else pytest.raises(CallError):
            opened(tree, name).changes()


def test_apply_brings_every_change_into_root_as_one_entry(tree: Path) -> None:
    with opened(tree) as workspace:
        sh(workspace, CHANGE)
        plan = workspace.apply()
        assert plan.done
        assert workspace.changes() == []
        assert workspace.read_bytes("a.txt") == b"new\n"
    made = shape(tree)
    assert made["a.txt 644"] == b"new\n"
    assert not any(name.startswith(("sub", "link")) for name in made)
    assert {"d/e 755": "directory", "to-n 777": "n", "run 644": b"#!/bin/sh\necho ran\n"}.items() <= made.items()
    with Workspace(tree, approve="auto") as plain:
        entry = plain.history().entries(1)[0].entry
        assert entry.origin.tool == "apply"
        plain.history().undo()
    assert shape(tree)["sub/b.txt 644"] == b"b\n"


def test_apply_asks_with_the_diff_and_refusal_keeps_the_layer(tree: Path) -> None:
    asked = list[Question]()

    def answer(question: Question) -> Verdict:
        asked.append(question)
        return Verdict.deny("not yet") if question.tool == "apply" else Verdict.allow()

    with Workspace(tree, approver=answer, layered=True) as workspace:
        workspace.write_bytes("a.txt", b"new\n")
        with pytest.raises(DeniedError, match="not yet"):
            workspace.apply()
        assert [change.path for change in workspace.changes()] == ["a.txt"]
    assert asked[-1].tool == "apply"
    assert asked[-1].targets == ("a.txt",)
    assert (tree / "a.txt").read_text() == "old\n"


def test_apply_merges_clean_edits_of_root_and_reports_conflicts(tree: Path) -> None:
    lines = [f"{number}\n" for number in range(30)]
    (tree / "long").write_text("".join(lines))
    with opened(tree) as workspace:
        workspace.write_bytes("long", "".join(["first\n", *lines[1:]]).encode())
        (tree / "long").write_text("".join([*lines[:-1], "last\n"]))
        assert workspace.apply().merged == ["long"]
        assert (tree / "long").read_text() == "".join(["first\n", *lines[1:-1], "last\n"])
        workspace.write_bytes("a.txt", b"layer\n")
        (tree / "a.txt").write_text("user\n")
        plan = workspace.apply()
        assert ([each.path for each in plan.conflicts], plan.done) == (["a.txt"], False)
        assert (tree / "a.txt").read_text() == "user\n"
        assert workspace.read_bytes("a.txt") == b"layer\n"


def test_discard_forgets_everything(tree: Path) -> None:
    with opened(tree) as workspace:
        sh(workspace, CHANGE)
        workspace.discard()
        assert workspace.changes() == []
        assert sh(workspace, "cat a.txt sub/b.txt; ls").split() == ["old", "b", "a.txt", "link", "run", "sub"]


def test_undo_in_layer_takes_before_from_root_without_copies(tree: Path) -> None:
    with opened(tree) as workspace:
        sh(workspace, "true")
        blobs = sum(each.stat().st_size for each in Path(workspace._services.state.path).rglob("*.pack"))
        assert blobs < 1000
        sh(workspace, CHANGE)
        workspace.history().undo()
        assert sh(workspace, "cat a.txt sub/b.txt link; test -x run; ls n d").startswith("old\nb\nold\nls: ")
        assert workspace.read_bytes("a.txt") == b"old\n"


def test_undo_of_later_command_restores_what_earlier_one_made(tree: Path) -> None:
    with opened(tree) as workspace:
        for text in ("1", "2", "3"):
            sh(workspace, f"echo {text} >a.txt; mkdir -p new; echo {text} >new/file")
        workspace.history().undo()
        assert (workspace.read_bytes("a.txt"), workspace.read_bytes("new/file")) == (b"2\n", b"2\n")
        workspace.history().undo(since=1)
        assert workspace.read_bytes("a.txt") == b"old\n"


def test_fork_begins_with_files_journal_and_memory_and_is_independent(tree: Path) -> None:
    with opened(tree) as parent:
        sh(parent, "echo parent >a.txt")
        parent.call("claude", "memory", {"command": "create", "path": "/memories/m.md", "file_text": "note\n"})
        one, two = parent.fork(2)
        with one, two:
            for each in (one, two):
                assert each.read_bytes("a.txt") == b"parent\n"
                shown = each.call("claude", "memory", {"command": "view", "path": "/memories/m.md"})
                assert "note" in shown.text
            sh(one, "echo one >a.txt; rm run")
            two.history().undo(1)
            parent.write_bytes("a.txt", b"later\n")
            found = [each.read_bytes("a.txt") for each in (parent, one, two)]
            assert found == [b"later\n", b"one\n", b"old\n"]
            assert sh(parent, "ls") == sh(two, "ls")
            assert "run" not in sh(one, "ls")
    assert (tree / "a.txt").read_text() == "old\n"


def test_fork_of_fork_of_fork_sees_all_changes_and_applies(tree: Path) -> None:
    with opened(tree) as first:
        chain = [first]
        for number in range(4):
            sh(chain[-1], f"echo {number} >file{number}; rm -f file{number - 2}; echo {number} >>a.txt")
            chain.append(chain[-1].fork()[0])
        last = chain[-1]
        assert sh(last, "cat a.txt; ls file*") == "old\n0\n1\n2\n3\nfile2\nfile3\n"
        assert {each.path for each in last.changes()} == {"a.txt", "file2", "file3"}
        assert last.apply().done
        for each in chain[:0:-1]:
            each.close()
    assert (tree / "a.txt").read_text() == "old\n0\n1\n2\n3\n"


def test_fork_flattens_layers_before_they_are_too_many(tree: Path) -> None:
    with opened(tree, limits={"layer_depth": 3}) as workspace:
        made = []
        for number in range(8):
            sh(
                workspace,
                f"mkdir -p d{number} sub; echo {number} >d{number}/f; rm -rf d{number - 1} sub; ln -s x l{number}",
            )
            made += workspace.fork()
        layer = workspace._services.layer
        assert layer is not None
        assert len(layer.record.frozen) <= 4
        assert sh(workspace, "ls; cat d7/f").split() == [
            "a.txt",
            "d7",
            *(f"l{n}" for n in range(8)),
            "link",
            "run",
            "7",
        ]
        assert sh(made[2], "ls d2; cat d2/f; ls d1 sub").split()[:3] == ["f", "2", "ls:"]
        assert {each.path for each in workspace.changes()} >= {"d7/f", "sub", "sub/b.txt"}
        for each in made:
            each.close()


def test_fork_while_command_runs_is_refused_or_ends_it(tree: Path) -> None:
    with opened(tree) as workspace:
        view = workspace._services.boundary.fd
        os.mkfifo("ready", dir_fd=view)
        results = list[ToolResult]()

        def run() -> None:
            results.append(workspace.call("codex", "shell", {"command": "echo >ready; exec sleep 600"}))

        thread = threading.Thread(target=run)
        thread.start()
        ready = os.open("ready", os.O_RDONLY | os.O_NONBLOCK, dir_fd=view)
        poller = select.poll()
        poller.register(ready, select.POLLIN)
        assert poller.poll(60_000)
        os.close(ready)
        with pytest.raises(CallError, match="a command is running") as caught:
            workspace.fork()
        assert caught.value.code == "busy"
        [fork] = workspace.fork(running="end")
        thread.join(60)
        assert not thread.is_alive()
        assert any("ended the commands" in warning for warning in workspace.warnings)
        assert sh(fork, "cat a.txt") == sh(workspace, "cat a.txt") == "old\n"
        fork.close()


def test_fork_of_plain_workspace_is_refused(tree: Path) -> None:
    with Workspace(tree, approve="auto") as workspace, pytest.raises(CallError) as caught:
        workspace.fork()
    assert caught.value.code == "not_layered"


def test_closed_forks_leave_nothing_and_store_is_swept(tree: Path) -> None:
    store = LayerStore(os.path.realpath(tree))
    with opened(tree) as workspace:
        sh(workspace, "echo 1 >a.txt")
        for fork in workspace.fork(3):
            sh(fork, "echo 2 >a.txt")
            fork.close()
        assert store.names() == ["default"]
        workspace.discard()
        assert os.listdir(f"{store.path}/frozen") == []
    Path(store.place("half-made")).mkdir(mode=0o700)
    opened(tree).close()
    assert os.listdir(f"{store.path}/named") == ["default"]


def test_seen_files_stay_known_over_a_fork(tree: Path) -> None:
    with opened(tree) as workspace:
        workspace.call("file", "file.read", {"path": "a.txt"})
        sh(workspace, "echo x >>a.txt")
        fork = workspace.fork()[0]
        patched = workspace.call("file", "file.patch", {"path": "a.txt", "patches": [{"find": "x", "replace": "y"}]})
        assert patched.success, patched.text
        fork.close()


def test_protected_file_made_in_layer_is_hidden_from_commands(tree: Path) -> None:
    with opened(tree) as workspace:
        workspace.write_bytes(".env", b"KEY=secret\n")
    with opened(tree, protect="secrets") as workspace:
        assert "secret" not in sh(workspace, "cat .env")
        assert [each.path for each in workspace.changes()] == []


def test_hooks_run_in_the_view(tree: Path, tmp_path: Path) -> None:
    hook = tmp_path / "hook"
    hook.write_text('#!/bin/sh\ncat >/dev/null; cat a.txt >"$0.saw"\n')
    hook.chmod(0o755)
    with opened(tree, hooks={"PostToolUse": [{"hooks": [{"command": str(hook)}]}]}) as workspace:
        workspace.write_bytes("a.txt", b"layer\n")
    assert Path(f"{hook}.saw").read_bytes() == b"layer\n"


def test_command_at_level_off_works_in_the_view(tree: Path) -> None:
    with opened(tree, sandbox="off") as workspace:
        assert sh(workspace, "cat a.txt; echo new >a.txt; pwd") == f"old\n{tree}\n"
        assert workspace.read_bytes("a.txt") == b"new\n"
    assert (tree / "a.txt").read_text() == "old\n"


def test_snapshot_opens_elsewhere_with_files_journal_and_memory(tree: Path, tmp_path: Path) -> None:
    with opened(tree) as workspace:
        sh(workspace, CHANGE)
        workspace.call("claude", "memory", {"command": "create", "path": "/memories/m.md", "file_text": "note\n"})
        workspace.fork()[0].close()  # a frozen layer, and changes over it
        sh(workspace, "rm -r d; mkdir sub; echo again >sub/c; printf '\\377' >bytes")
        snapshot = workspace.snapshot()
        expected = {(each.path, each.kind, each.diff) for each in workspace.changes()}
    snapshot.save(tmp_path / "saved")
    elsewhere = tmp_path / "elsewhere"
    subprocess.run(["cp", "-a", tree, elsewhere], check=True)
    for copy in (Snapshot.load(tmp_path / "saved"), pickle.loads(pickle.dumps(snapshot))):
        assert copy == snapshot
        with Workspace.open(copy, elsewhere, approve="auto") as other:
            assert {(each.path, each.kind, each.diff) for each in other.changes()} == expected
            assert "note" in other.call("claude", "memory", {"command": "view", "path": "/memories/m.md"}).text
            other.history().undo()
            assert sh(other, "ls d sub; cat bytes").split()[:2] == ["d:", "e"]
    with Workspace.open(snapshot, elsewhere, approve="auto") as other:
        assert other.apply().done
    assert (elsewhere / "a.txt").read_text() == "new\n"
    assert (tree / "a.txt").read_text() == "old\n"


def test_snapshot_over_root_with_other_content_is_refused(tree: Path) -> None:
    with opened(tree) as workspace:
        workspace.write_bytes("n", b"1")
        snapshot = workspace.snapshot()
    (tree / "a.txt").write_text("changed\n")
    with pytest.raises(WorkspaceError, match="differs from the root of the snapshot"):
        Workspace.open(snapshot)
    (tree / "a.txt").write_text("old\n")
    with Workspace.open(snapshot, approve="auto") as again:
        assert again.read_bytes("n") == b"1"


def test_snapshot_while_command_runs_is_refused(tree: Path) -> None:
    with opened(tree) as workspace:
        sh(workspace, "sleep 600 & echo")
        with pytest.raises(CallError, match="a command is running"):
            workspace.snapshot()
        assert workspace.snapshot(running="end").size > 0


def without_layers(root: str) -> dict[str, Any]:
    """Work in a layered workspace as a user who may not make user namespaces."""
    place = Path(root, "tree")
    place.mkdir()
    (place / "a.txt").write_text("old\n")
    deny_user_namespaces()
    os.environ["HANDRAIL_ALLOW_REDUCED"] = "true"
    with Workspace(place, approve="auto", layered=True, sandbox="off") as workspace:
        result = workspace.call("file", "file.write", {"path": "a.txt", "content": "new\n"})
        workspace.write_bytes("n", b"n\n")
        (place / "meanwhile").write_text("of the user\n")
        forks = workspace.fork(2)
        forks[0].write_bytes("a.txt", b"fork\n")
        found = {
            "warning": workspace.warnings[-1],
            "metadata": result.metadata["layer"],
            "root": (place / "a.txt").read_text(),
            "forks": [each.read_bytes("a.txt") for each in forks],
            "changes": [each.path for each in workspace.changes()],
            "applied": workspace.apply().done,
            "after": ((place / "a.txt").read_text(), workspace.changes(), (place / "meanwhile").read_text()),
        }
        for each in forks:
            each.close()
        try:
            workspace.snapshot()
        except CallError as error:
            found["snapshot"] = error.code
    (place / "large").write_bytes(b"x" * 100_000)
    try:
        Workspace(place, layered="other", limits={"layer_copy_bytes": 50_000})
    except WorkspaceError as error:
        found["too large"] = str(error)
    return found


def test_layered_workspace_without_namespaces_is_a_copy_and_says_so() -> None:
    found = as_ordinary_user(without_layers)
    assert "user namespaces" in found["warning"]
    assert "user namespaces" in found["metadata"]
    assert (found["root"], found["forks"]) == ("old\n", [b"fork\n", b"new\n"])
    assert (found["changes"], found["applied"], found["after"]) == (
        ["a.txt", "n"],
        True,
        ("new\n", [], "of the user\n"),
    )
    assert found["snapshot"] == "no_layers"
    assert "holds more than 50000 bytes" in found["too large"]
