"""Attacks the names that a sandbox occupies from another session: locks, and parents exchanged for links."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.kernel.fs.placeholder import MARK
from handrail.kernel.sandbox.view.occupied_names import OccupiedNames


@pytest.fixture
def occupied(root: Path) -> Iterator[OccupiedNames]:
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    yield OccupiedNames(fd, str(root))
    os.close(fd)


def test_placeholder_locked_by_another_process_does_not_block(root: Path, occupied: OccupiedNames) -> None:
    """A command can mark a directory of its own repository as a placeholder, and lock it."""
    (root / ".git/worktrees").mkdir(parents=True)
    try:
        os.setxattr(root / ".git/worktrees", MARK, b"1")
    except OSError:
        pytest.skip("the file system has no extended attributes")
    lock = os.open(root / ".git/worktrees", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    occupied.occupy(())
    assert ".git/worktrees" in occupied.mounts
    occupied.remove()
    os.close(lock)
    assert (root / ".git/worktrees").is_dir()


def test_parent_exchanged_for_link_makes_no_placeholder_outside(
    root: Path, occupied: OccupiedNames, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "d").mkdir()
    real = OccupiedNames._open

    def exchange(self: OccupiedNames, name: str) -> int:
        handle = real(self, name)
        if name == "d" and not (root / "d").is_symlink():
            (root / "d").rename(root / "old")
            (root / "d").symlink_to(outside)
        return handle

    monkeypatch.setattr(OccupiedNames, "_open", exchange)
    with pytest.raises(NotADirectoryError):
        occupied.occupy(("d/x",))
    occupied.remove()
    assert list(outside.iterdir()) == []


def test_parent_exchanged_for_link_removes_nothing_outside(root: Path, occupied: OccupiedNames, tmp_path: Path) -> None:
    (root / "d").mkdir()
    occupied.occupy(("d/x",))
    (root / "d").rename(tmp_path / "moved")
    (root / "d").symlink_to(tmp_path / "moved")
    occupied.remove()
    assert (tmp_path / "moved/x").is_dir()
