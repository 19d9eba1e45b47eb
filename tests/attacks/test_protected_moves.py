"""Checks that protected files stay protected when a command moves their directory, in this session and the next."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from attacks.protected import SECRET, refused
from kernel.test_protected_files import statx_tells_birth
from support.ordinary_user import as_ordinary_user
from support.sandboxes import has_bubblewrap, sleeping

from handrail import Workspace
from handrail.kernel.process.runner import Command, Processes
from handrail.kernel.sandbox.sandbox import Sandbox, SandboxSettings
from handrail.model.faults import SandboxUnavailable
from handrail.model.limits import Limits
from handrail.ops.glob.protected_names import SECRET_FILES

PLACES = {
    "**/.docker/config.json": ".docker/config.json",
    "**/.kube/config": ".kube/config",
    "**/.config/gcloud": ".config/gcloud/credentials.db",
}
OWN = {"/conf/private.txt": "conf/private.txt", "deep/**/x.txt": "deep/a/b/x.txt"}
EVERY = {**PLACES, **OWN}
RULES = ["@secrets", *OWN]


@pytest.fixture(autouse=True)
def _bubblewrap(tmp_path: Path) -> None:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no bubblewrap here")


@pytest.fixture
def opened(root: Path) -> Any:
    """Return a function that opens a session with the rules; the caller closes the session."""
    return lambda: Workspace(str(root), approve="auto", protect=RULES)


def plant(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{SECRET}\n")


def run(workspace: Workspace, command: str) -> str:
    result: Any = workspace.call("codex", "shell", {"command": f"({command}) 2>&1", "timeout_ms": 30_000})
    assert result.success, result
    assert "hunter2" not in result.output["stdout"], (command, result.output)
    return str(result.output["stdout"])


def shown_nowhere(workspace: Workspace, path: str, rule: str) -> None:
    """Check that no tool, search, list or command of this session shows the file at `path`."""
    refused(workspace, "copilot", "read_file", {"path": path}, rule)
    refused(workspace, "file", "file.patch", {"path": path, "patches": [{"find": "TOKEN", "replace": "x"}]}, rule)
    refused(workspace, "file", "file.delete", {"path": path}, rule)
    for engine in ("ripgrep", "builtin"):
        from handrail.kernel.search.searcher import Searcher

        workspace._services.__dict__["searcher"] = Searcher(workspace.settings.limits, engine)
        found = workspace.call("copilot", "grep_search", {"pattern": "TOKEN"})
        assert found.output == "Found 0 matches for 'TOKEN':"
        files: Any = workspace.call("copilot", "file_search", {"pattern": "**/*"}).output
        assert f"  {path}\n" not in f"{files}\n"
    listed: Any = workspace.call("codex", "list_dir", {"depth": 10}).output
    assert path not in listed["entries"]
    run(workspace, f"cat {path}; grep -r TOKEN .; tar cf - . | tr -d '\\0'")


def test_tests_cover_every_secret_rule_with_a_directory() -> None:
    assert {glob for glob in SECRET_FILES if "/" in glob} == set(PLACES)


@pytest.mark.parametrize(("rule", "path"), EVERY.items())
def test_renamed_parent_keeps_file_protected_in_both_sessions(root: Path, opened: Any, rule: str, path: str) -> None:
    plant(root, path)
    parent, _, rest = path.partition("/")
    with opened() as workspace:
        run(workspace, f"mv {parent} k; touch n.pem")
        assert (root / "k" / rest).read_text() == f"{SECRET}\n"
        refused(workspace, "copilot", "read_file", {"path": f"k/{rest}"}, rule)
        run(workspace, f"cat k/{rest}; cp -r k copy; cat copy/{rest}")
        shown_nowhere(workspace, f"k/{rest}", rule)
        run(workspace, "mv k other; touch m.pem")
        shown_nowhere(workspace, f"other/{rest}", rule)
    with opened() as workspace:
        shown_nowhere(workspace, f"other/{rest}", rule)
    with opened() as workspace:  # runs a command before any other call
        run(workspace, f"cat other/{rest}")


def test_protected_directory_moved_by_user_protects_new_files_too(root: Path, opened: Any) -> None:
    plant(root, ".ssh/deep/config")
    with opened() as workspace:
        run(workspace, "true")
    (root / ".ssh").rename(root / "moved")
    plant(root, "moved/new")
    with opened() as workspace:
        for path in ("moved/deep/config", "moved/new"):
            shown_nowhere(workspace, path, ".ssh")
        refused(workspace, "copilot", "list_dir", {"path": "moved"}, ".ssh")
        refused(workspace, "copilot", "create_file", {"path": "moved/x", "content": "x"}, ".ssh")
        assert "moved" not in str(workspace.call("copilot", "list_dir", {}).output)


def test_protected_file_edited_after_move_stays_protected(root: Path, opened: Any) -> None:
    plant(root, ".kube/config")
    if not statx_tells_birth(root / ".kube/config"):
        pytest.skip("the file system does not record birth times")
    with opened() as workspace:
        run(workspace, "mv .kube k")
    with (root / "k/config").open("a") as file:
        file.write(f"{SECRET} and more\n")
    with opened() as workspace:
        shown_nowhere(workspace, "k/config", "**/.kube/config")


def test_protected_file_moved_into_new_git_directory_stays_protected(root: Path, opened: Any) -> None:
    plant(root, ".kube/config")
    with opened() as workspace:
        run(workspace, "git init -q . || mkdir .git; mv .kube .git/k; touch n.pem")
        run(workspace, "cat .git/k/config")
        refused(workspace, "copilot", "read_file", {"path": ".git/k/config"}, "**/.kube/config")


def test_protected_file_moved_too_deep_to_cover_stops_commands(root: Path, opened: Any) -> None:
    plant(root, ".kube/config")
    down = f"import os; [(os.mkdir(n), os.chdir(n)) for n in ['{'d' * 200}'] * 25]"
    script = f"import os; top = os.open('.', os.O_RDONLY); {down}; os.rename('.kube', 'k', src_dir_fd=top)"
    with opened() as workspace:
        run(workspace, f'python3 -c "{script}"; touch n.pem')
        assert not (root / ".kube").exists()
        result = workspace.call("codex", "shell", {"command": "cat open.txt"})
        assert result.error is not None
        assert result.error.code == "sandbox_unavailable"
        assert "protected files may be in dddd" in result.error.message
        shutil.rmtree(root / ("d" * 200))
        run(workspace, "true")


def _hide_behind_a_mode(root: str) -> tuple[list[str], list[str], list[str]]:
    top = Path(root)
    plant(top, ".kube/config")
    (top / "d").mkdir()
    with Workspace(root, approve="auto", protect=RULES) as workspace:
        before = [*workspace._services.masks()]
        (top / ".kube").rename(top / "d/k")
        (top / "d").chmod(0)  # a command can do this, and undo it later
        with pytest.raises(SandboxUnavailable) as raised:
            workspace._services.masks()
        (top / "d").chmod(0o755)
        after = [*workspace._services.masks()]
    before, after = ([os.path.relpath(path, root) for path in each] for each in (before, after))
    return before, raised.value.why, after


def test_protected_file_in_unreadable_directory_stops_commands() -> None:
    before, why, after = as_ordinary_user(_hide_behind_a_mode)
    assert before == [".kube/config"]
    assert why == ["protected files may be in d, which cannot be read"]
    assert after == ["d/k/config"]


def test_background_process_ends_before_final_scan_of_new_sandbox(root: Path) -> None:
    """A process that keeps moving a file could otherwise keep it from being found, and read it afterwards."""
    looks: list[int] = []

    def masks() -> dict[str, tuple[int, int]]:
        looks.append(len(sleeping("31.4159")))
        return {f"{root}/{number}": (0, number) for number in range(len(looks))}

    settings = SandboxSettings(limits=Limits())
    handle = os.open(root, os.O_RDONLY)
    processes = Processes(Sandbox(handle, str(root), settings, masks=masks), str(root / "out"))
    try:
        begun = "sleep 31.4159 & until grep -q sleep /proc/$!/comm; do :; done"
        assert processes.run(Command(["/bin/sh", "-c", begun], keep_background=True)).background
        assert processes.run(Command(["/bin/true"])).exit_code == 0
    finally:
        processes.close()
        os.close(handle)
    assert looks == [0, 1, 0]


def test_directories_in_moved_protected_directory_are_not_listed(root: Path, opened: Any) -> None:
    plant(root, ".config/gcloud/configurations/work")
    with opened() as workspace:
        run(workspace, "mv .config k")
        for path in ("k/gcloud", "k/gcloud/configurations"):
            refused(workspace, "copilot", "list_dir", {"path": path}, "**/.config/gcloud")


def test_new_file_with_inode_of_deleted_protected_file_is_free(root: Path, opened: Any) -> None:
    plant(root, ".kube/config")
    with opened() as workspace:
        run(workspace, "true")
    shutil.rmtree(root / ".kube")
    for number in range(20):
        (root / f"new{number}.txt").write_text(f"{'new' * 20}\n")
    with opened() as workspace:
        for number in range(20):
            assert workspace.call("copilot", "read_file", {"path": f"new{number}.txt"}).success
        assert "new" in run(workspace, "cat new*.txt")


def test_removed_rule_no_longer_protects_remembered_file(root: Path, opened: Any) -> None:
    plant(root, ".kube/config")
    with opened() as workspace:
        run(workspace, "mv .kube k")
    with Workspace(str(root), approve="auto", protect=[".env"]) as workspace:
        assert workspace.call("copilot", "read_file", {"path": "k/config"}).success
    with opened() as workspace:
        shown_nowhere(workspace, "k/config", "**/.kube/config")


def test_protected_file_moved_too_deep_to_name_is_not_found(root: Path, opened: Any) -> None:
    plant(root, ".kube/config")
    name = "n" * 200
    dig = f"mv .kube k; p=k; for i in $(seq 24); do mkdir t; mv $p t/; p={name}$i; mv t $p; done"
    with opened() as workspace:
        run(workspace, dig)
        where = "/".join(f"{name}{i}" for i in range(24, 6, -1))
        found = workspace.call("codex", "grep_files", {"pattern": SECRET, "path": where})
        everywhere = workspace.call("file", "file.search", {"pattern": SECRET})
    assert SECRET not in str(found.output) + str(everywhere.output)


def test_hard_link_in_directory_renamed_to_git_stays_protected(root: Path, opened: Any) -> None:
    plant(root, ".env")
    (root / "sub").mkdir()
    os.link(root / ".env", root / "sub" / "plain")
    with opened() as workspace:
        run(workspace, "mv sub .git; touch x.pem")
        same = run(workspace, "cat .git/plain")
    with opened() as workspace:
        later = run(workspace, "cat .git/plain")
    assert SECRET not in same + later
