"""Checks that the hint for a wrong path names no file that the tools may not reach."""

from pathlib import Path

import pytest

from handrail import Workspace

READS = [
    ("gemini", "read_file", "absolute_path", "{root}/"),
    ("context", "read_file", "path", ""),
    ("copilot", "read_file", "path", ""),
    ("file", "file.read", "path", ""),
    ("codex", "read_file", "path", ""),
]
WRONG = [
    "credentials.jsn",
    "other/credentials.json",
    "vault/../credentials.jso",
    "deep/note.txt",
    "valut/note.txt",
    "secret.txt",
    "outsider.txt",
    "linkd.txt",
]


@pytest.mark.parametrize(("dialect", "tool", "parameter", "stem"), READS)
@pytest.mark.parametrize("wrong", WRONG)
def test_nearest_path_names_no_protected_or_outside_file(
    root: Path, dialect: str, tool: str, parameter: str, stem: str, wrong: str
) -> None:
    (root / "credentials.json").write_text("TOKEN")
    (root / "vault" / "deep").mkdir(parents=True)
    (root / "vault" / "deep" / "note.txt").write_text("TOKEN")
    (root.parent / "outside.txt").write_text("TOKEN")
    (root / "outsidee.txt").symlink_to("../outside.txt")
    (root / "linked.txt").symlink_to("credentials.json")
    with Workspace(str(root), protect=["/credentials.json", "vault/"]) as workspace:
        result = workspace.call(dialect, tool, {parameter: stem.format(root=root) + wrong})
        assert result.error is not None
        assert "Did you mean" not in result.error.suggestion, result.error


def test_nearest_path_without_time_still_names_spelling(root: Path) -> None:
    (root / "src").mkdir()
    (root / "src" / "app.py").write_text("x")
    with Workspace(str(root), limits={"nearest_seconds": 0}) as workspace:
        near = workspace.call("file", "file.read", {"path": "src/ap.py"}).error
        far = workspace.call("file", "file.read", {"path": "lib/app.py"}).error
    assert near is not None
    assert near.suggestion.startswith("Did you mean src/app.py?")
    assert far is not None


def test_nearest_path_is_not_looked_for_if_no_path_is_so_long(root: Path) -> None:
    """Each end of the path was tried, in a time that grew with the square of its length: this call took hours."""
    with Workspace(str(root)) as workspace:
        error = workspace.call("claude-code", "Read", {"file_path": "a/" * 1_000_000 + "b"}).error
    assert error is not None
    assert error.code == "invalid_parameters"


def test_nearest_path_in_directory_with_many_names_is_bounded(root: Path) -> None:
    for number in range(3000):
        (root / f"page-{number:05}.txt").touch()
    with Workspace(str(root)) as workspace:
        error = workspace.call("file", "file.read", {"path": "page-00007.tx"}).error
    assert error is not None
    assert error.suggestion.startswith("Did you mean page-0")


@pytest.mark.parametrize(
    "wrong",
    [
        "srcs/handrail/kernel/disk.py",
        "src/handrial/kernl/disk.py",
        "scr/hndrail/kernal/dsik.py",
        "src/handrail/kernel/disc.py",
    ],
)
def test_nearest_path_every_wrong_component_is_put_right(root: Path, wrong: str) -> None:
    (root / "src" / "handrail" / "kernel").mkdir(parents=True)
    (root / "src" / "handrail" / "kernel" / "disk.py").write_text("x")
    with Workspace(str(root), limits={"nearest_seconds": 0}) as workspace:
        error = workspace.call("file", "file.read", {"path": wrong}).error
    assert error is not None
    assert error.suggestion.startswith("Did you mean src/handrail/kernel/disk.py?")
