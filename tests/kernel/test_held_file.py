"""Tests the lock of a file that is replaced while it is held."""

import os
from pathlib import Path

import pytest

from handrail.kernel.host.state_dir import HeldFile


def test_held_file_stays_locked_through_replacements(tmp_path: Path) -> None:
    path = tmp_path / "held"
    path.write_text("0")
    held = HeldFile(str(path))
    for n in range(3):
        held.replace(str(n).encode())
        with pytest.raises(BlockingIOError):
            HeldFile(str(path))
        assert path.read_text() == str(n)
    held.close()
    HeldFile(str(path)).close()
    assert os.listdir(tmp_path) == ["held"]


def test_held_file_new_name_is_held_from_first_content(tmp_path: Path) -> None:
    path = str(tmp_path / "new")
    held, late = HeldFile(path), HeldFile(path)
    held.replace(b"x")
    with pytest.raises(BlockingIOError):
        late.replace(b"y")
    assert (tmp_path / "new").read_text() == "x"
    with pytest.raises(BlockingIOError):
        HeldFile(path)
    held.close()
    held.close()
    os.unlink(path)
    HeldFile(path).close()


def test_held_file_failed_replacement_keeps_lock_and_content(tmp_path: Path) -> None:
    path = tmp_path / "held"
    path.write_text("old")
    held = HeldFile(str(path))
    path.unlink()
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        held.replace(b"new")
    assert os.listdir(tmp_path) == ["held"]
    held.close()
