"""Reads whole files, pages, heads and directories, also while they change."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.writer import commit

from handrail import FsBoundary, Workspace
from handrail.kernel.fs import line_index
from handrail.kernel.fs import reader as files
from handrail.kernel.fs.reader import Reader
from handrail.model.faults import (
    BadPath,
    Conflict,
    IsDirectory,
    NotADirectory,
    NotFound,
    SpecialFile,
    TooLarge,
    WriteFailed,
)
from handrail.model.files import FileEntry, Page, Put
from handrail.model.limits import Limits


class Interrupted:
    """Replaces the os module: runs an action before each call with this name."""

    def __init__(self, name: str, action: Callable[[], object]) -> None:
        self._name, self._action = name, action

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name != self._name:
            return real

        def call(*args: Any, **options: Any) -> Any:
            self._action()
            return real(*args, **options)

        return call


@pytest.fixture
def reader(root: Path) -> Reader:
    limits = Limits(edit_bytes=100, page_bytes=40)
    return Reader(FsBoundary(root, limits=limits), limits)


def fail() -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_whole_file_is_read_up_to_limit(reader: Reader, root: Path) -> None:
    (root / "fits").write_bytes(b"x" * 100)
    (root / "large").write_bytes(b"x" * 101)
    assert reader.read("fits").data == b"x" * 100
    with pytest.raises(TooLarge) as caught:
        reader.read("large")
    assert (caught.value.size, caught.value.limit) == (101, 100)


def test_file_that_grows_beyond_limit_during_read_is_too_large(
    reader: Reader, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / "log"
    path.write_bytes(b"x" * 90)

    def grow() -> None:
        with path.open("ab") as log:
            log.write(b"y" * 20)

    monkeypatch.setattr(files, "os", Interrupted("read", grow))
    with pytest.raises(TooLarge):
        reader.read("log")


def test_edit_of_half_written_file_is_a_conflict(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "file"
    path.write_bytes(b"first half, ")
    more = iter([b"second half"])

    def write_on() -> None:
        with path.open("ab") as file:
            file.write(next(more, b""))

    with Workspace(str(root), approve="auto") as workspace:
        with monkeypatch.context() as patch:
            patch.setattr(files, "os", Interrupted("read", write_on))
            caught = workspace._services.reader.read("file")
        with pytest.raises(Conflict):
            commit(workspace._services.writer, [Put("file", caught.data.upper(), caught)], ["file"])
    assert path.read_bytes() == b"first half, second half"


def test_read_error_of_disk_is_a_fault(reader: Reader, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "file").write_bytes(b"x")
    for module, name, act in (
        (files, "read", lambda: reader.read("file")),
        (line_index, "pread", lambda: reader.page("file")),
        (files, "scandir", lambda: reader.entries(".")),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, "os", Interrupted(name, fail))
            with pytest.raises(WriteFailed) as caught:
                act()
        assert caught.value.why == "Input/output error"


PAGES: dict[tuple[bytes, int, int | None], Page] = {
    (b"", 1, None): Page(b"", 1, 0, 0, 0),
    (b"a\nb\nc\n", 1, None): Page(b"a\nb\nc\n", 1, 3, 3, 6),
    (b"a\nb\nc", 1, None): Page(b"a\nb\nc", 1, 3, 3, 5),
    (b"a\nb\nc\n", 2, 1): Page(b"b\n", 2, 1, 3, 6),
    (b"a\nb\nc\n", 3, 5): Page(b"c\n", 3, 1, 3, 6),
    (b"a\nb\nc\n", 4, 1): Page(b"", 4, 0, 3, 6),
    (b"\n\n\n", 2, 1): Page(b"\n", 2, 1, 3, 3),
    (b"x" * 50 + b"\ny\n", 1, None): Page(b"x" * 40, 1, 1, 2, 53, cut=True),
    (b"x" * 50 + b"\ny\n", 2, None): Page(b"y\n", 2, 1, 2, 53),
}


@pytest.mark.parametrize(("data", "first", "count"), PAGES)
@pytest.mark.parametrize("chunk", [1, 2, 3, 1 << 20])
def test_page_is_same_for_every_chunk_size(
    reader: Reader, root: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, first: int, count: int | None, chunk: int
) -> None:
    (root / "file").write_bytes(data)
    monkeypatch.setattr(files, "_CHUNK", chunk)
    assert reader.page("file", first, count) == PAGES[data, first, count]


def test_page_ends_at_file_size_when_opened(reader: Reader, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "log"
    path.write_bytes(b"a\n")

    def grow() -> None:
        with path.open("ab") as log:
            log.write(b"b\n")

    monkeypatch.setattr(line_index, "os", Interrupted("pread", grow))
    assert reader.page("log").data == b"a\n"


def test_page_of_file_truncated_during_read_ends_there(
    reader: Reader, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / "file"
    path.write_bytes(b"a\nb\n")
    monkeypatch.setattr(line_index, "os", Interrupted("pread", lambda: os.truncate(path, 2)))
    assert reader.page("file").data == b"a\n"


def test_head_of_file_comes_with_its_size(reader: Reader, root: Path) -> None:
    (root / "file").write_bytes(b"x" * 1000)
    assert reader.head("file", 3) == (b"xxx", 1000)


def test_reader_tells_kind_of_each_name(reader: Reader, root: Path) -> None:
    (root / "file").write_bytes(b"12")
    (root / "directory").mkdir()
    (root / "link").symlink_to("file")
    (root / "broken").symlink_to("missing")
    os.mkfifo(root / "pipe")
    names = ("file", "directory", "link", "broken", "missing", "pipe", "file/below", ".")
    assert {name: reader.kind(name) for name in names} == {
        "file": "file",
        "directory": "directory",
        "link": "file",
        "broken": None,
        "missing": None,
        "pipe": "other",
        "file/below": None,
        ".": "directory",
    }
    entry = reader.stat("link", follow=False)
    assert (entry.name, entry.kind) == ("link", "link")


def test_entries_are_sorted_and_follow_links(reader: Reader, root: Path) -> None:
    for name in ("b", "A", "a"):
        (root / name).write_bytes(b"1")
    (root / "sub").mkdir()
    (root / "to_sub").symlink_to("sub")
    (root / "broken").symlink_to("nowhere")
    found = [(entry.name, entry.kind, entry.is_link) for entry in reader.entries(".")]
    assert found == [
        ("A", "file", False),
        ("a", "file", False),
        ("b", "file", False),
        ("broken", "link", True),
        ("sub", "directory", False),
        ("to_sub", "directory", True),
    ]


def test_entry_that_vanishes_during_listing_is_left_out(reader: Reader, root: Path) -> None:
    (root / "stays").touch()
    for each in os.scandir(root):
        entry = each
    (root / "stays").unlink()
    assert reader._entry(".", entry) is None
    assert reader.entries(".") == []


WRONG = {
    "missing": NotFound,
    "directory": IsDirectory,
    "file/": NotADirectory,
    "file/x": NotFound,
    "pipe": SpecialFile,
    "": BadPath,
}


@pytest.mark.parametrize("resolver", ["openat2", "walk"])
@pytest.mark.parametrize("path", WRONG)
def test_open_file_of_wrong_kind_raises_matching_fault(root: Path, path: str, resolver: Any) -> None:
    (root / "file").touch()
    (root / "directory").mkdir()
    os.mkfifo(root / "pipe")
    boundary = FsBoundary(root, resolver=resolver)
    with pytest.raises(WRONG[path]):
        boundary.open_file(path)


@pytest.mark.parametrize("resolver", ["openat2", "walk"])
def test_open_directory_accepts_directories_and_refuses_others(root: Path, resolver: Any) -> None:
    (root / "file").touch()
    (root / "sub").mkdir()
    (root / "link").symlink_to("sub")
    boundary = FsBoundary(root, resolver=resolver)
    for path in (".", "sub", "link", "sub/..", str(root)):
        os.close(boundary.open_directory(path))
    with pytest.raises(NotADirectory):
        boundary.open_directory("file")
    with pytest.raises(NotFound):
        boundary.open_directory("missing")


def test_file_entry_of_directory_is_directory() -> None:
    assert FileEntry("a", "directory", 0, 0).is_directory
