"""Builds and removes whole directories that replace files."""

import os
from pathlib import Path

from handrail.kernel.write.subtree import build, is_still, remove
from handrail.model.files import Node

TREE = Node("directory", b"", 0o755, inside=(("file", Node("file", b"text", 0o640)),))


def test_subtree_is_built_as_described_and_removed(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    build(fd, "tree", TREE, sync=True)
    assert (tmp_path / "tree" / "file").read_bytes() == b"text"
    remove(fd, "tree")
    assert os.listdir(fd) == []
    os.close(fd)


def test_file_in_place_of_subtree_differs_and_is_removed_alone(tmp_path: Path) -> None:
    (tmp_path / "tree").write_text("")
    (tmp_path / "other").write_text("")
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    assert not is_still(fd, "tree", TREE)
    remove(fd, "tree")
    assert os.listdir(fd) == ["other"]
    os.close(fd)
