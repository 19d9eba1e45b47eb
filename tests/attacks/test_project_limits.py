"""Opens a project that lowers every limit it can: the user loses neither the history nor the sandbox."""

from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Workspace
from handrail.model.limits import MAY_BE_LOWERED, Limits


def lowered(root: Path, value: int, names: frozenset[str] | tuple[str, ...]) -> None:
    (root / ".handrail.toml").write_text("[limits]\n" + "".join(f"{name} = {value}\n" for name in names))


@pytest.mark.parametrize("value", [0, 1])
def test_lowered_project_limits_keep_journal_and_undo(root: Path, value: int) -> None:
    (root / "file").write_text("mine\n")
    with Workspace(str(root), approve="auto") as before:
        assert before.call("file", "file.write", {"path": "new", "content": "x"}).success
    lowered(root, value, Limits._fields)
    with Workspace(str(root), approve="auto") as hostile:
        assert hostile.call("file", "file.delete", {"path": "file"}).success
    with Workspace(str(root), approve="auto") as after:
        assert after.history().undo(2).done
        assert after.history().undo(1).done
    assert (root / "file").read_text() == "mine\n"
    assert not (root / "new").exists()


@pytest.mark.parametrize("value", [0, 1])
def test_lowered_project_limits_keep_sandbox_level(root: Path, value: int) -> None:
    def confinement() -> object:
        with Workspace(str(root), approve="auto") as workspace:
            return workspace.call("copilot", "run_in_terminal", {"command": "true"}).metadata["sandbox"]

    usual = confinement()
    lowered(root, value, Limits._fields)
    assert confinement() == usual


READS: list[tuple[str, str, Callable[[Path], dict[str, object]]]] = [
    ("file", "file.read", lambda _: {"path": "a"}),
    ("file", "file.search", lambda _: {"pattern": "o"}),
    ("gemini", "read_file", lambda root: {"absolute_path": f"{root}/a"}),
    ("gemini", "search_file_content", lambda _: {"pattern": "o"}),
    ("gemini", "glob", lambda _: {"pattern": "**"}),
    ("context", "grep", lambda _: {"pattern": "o"}),
    ("context", "search", lambda _: {"query": "one"}),
    ("context", "list_directory", lambda _: {"path": "."}),
    ("copilot", "read_file", lambda _: {"path": "a"}),
    ("copilot", "list_dir", lambda _: {"path": "."}),
    ("copilot", "file_search", lambda _: {"pattern": "**"}),
    ("codex", "list_dir", lambda _: {"path": "."}),
    ("codex", "grep_files", lambda _: {"pattern": "o", "path": "."}),
]


@pytest.mark.parametrize("name", sorted(MAY_BE_LOWERED))
def test_lowered_project_limit_causes_no_internal_error(root: Path, name: str) -> None:
    (root / "a").write_text("one\ntwo\n")
    lowered(root, 0, (name,))
    with Workspace(str(root)) as workspace:
        for dialect, tool, params in READS:
            error = workspace.call(dialect, tool, params(root)).error
            assert error is None or error.code != "internal_error", tool
