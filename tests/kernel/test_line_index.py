"""Checks that a page is the same with the line index and without it."""

import os
import random
from pathlib import Path

import pytest

from handrail import Workspace
from handrail.kernel.fs import line_index
from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.fs.reader import Reader
from handrail.model.limits import Limits


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.setattr(line_index, "_SETTLED_NS", 0)
    return Reader(FsBoundary(tmp_path), Limits())


def preads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that collects the offset of each read from now on."""
    seen: list[int] = []
    real = os.pread

    def noted(fd: int, count: int, at: int) -> bytes:
        seen.append(at)
        return real(fd, count, at)

    monkeypatch.setattr(os, "pread", noted)
    return seen


def large(path: Path, *, open_end: bool = False) -> list[bytes]:
    chance = random.Random(7)
    made = [
        b"%d %s\n" % (n, b"x" * chance.choice((0, 3, 40, 90, 400_000 if n % 9000 == 0 else 7))) for n in range(200_000)
    ]
    if open_end:
        made[-1] = made[-1].rstrip(b"\n")
    path.write_bytes(b"".join(made))
    return made


@pytest.mark.parametrize("open_end", [False, True])
def test_page_has_lines_of_file_at_any_offset(reader: Reader, tmp_path: Path, open_end: bool) -> None:
    made = large(tmp_path / "a", open_end=open_end)
    chance = random.Random(8)
    for first in [1, len(made), len(made) + 1, 10**9, *(chance.randrange(1, len(made)) for _ in range(60))]:
        for count in (None, 1, 100, 20_000):
            page = reader.page("a", first, count)
            wanted = made[first - 1 :] if count is None else made[first - 1 : first - 1 + count]
            assert (page.data, page.count, page.total_lines) == (b"".join(wanted), len(wanted), len(made))


def test_cut_page_is_same_when_read_again(reader: Reader, tmp_path: Path) -> None:
    large(tmp_path / "a")
    assert reader.page("a", 5000, None, 300_000) == reader.page("a", 5000, None, 300_000)


def test_second_page_reads_only_its_own_part(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = large(tmp_path / "a")
    reader.page("a", 1, 1)
    seen = preads(monkeypatch)
    assert reader.page("a", 80_000, 3).data == b"".join(made[79_999:80_002])
    assert len(seen) <= 2


def test_changed_file_is_counted_again(reader: Reader, tmp_path: Path) -> None:
    made = large(tmp_path / "a")
    assert reader.page("a", 1, 1).total_lines == len(made)
    with (tmp_path / "a").open("r+b") as file:
        file.write(b"\n\n\n")
    assert reader.page("a", 1, 1).total_lines == len(made) + 3


def test_recently_changed_file_is_not_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(FsBoundary(tmp_path), Limits())
    large(tmp_path / "a")
    reader.page("a", 1, 1)
    seen = preads(monkeypatch)
    reader.page("a", 80_000, 3)
    assert len(seen) > 2


def test_line_index_keeps_limited_number_of_files(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_index, "_INDEXED_FILES", 2)
    for name in "abc":
        large(tmp_path / name)
        reader.page(name, 1, 1)
    seen = preads(monkeypatch)
    reader.page("c", 80_000, 3)
    assert len(seen) <= 2
    reader.page("a", 80_000, 3)
    assert len(seen) > 4


def test_page_of_sparse_file_reads_no_hole_and_shows_little_of_it(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "a").open("wb") as file:
        for number in range(100):
            file.seek(number * (10 << 30))
            file.write(b"line %d\n" % number)
        file.truncate(1 << 40)
    seen = preads(monkeypatch)
    hole = reader.page("a", 2)
    deep = reader.page("a", 100, 1)
    assert (len(hole.data) < 2 << 20, hole.cut, hole.total_lines) == (True, True, 101)
    assert (deep.data[-8:], deep.total_lines) == (bytes(8), 101)
    assert len(seen) < 300


def test_page_that_takes_too_long_says_that_there_may_be_more(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"line\n" * 100_000)
    page = Reader(FsBoundary(tmp_path), Limits(page_seconds=0)).page("a", 1, 3)
    assert (page.data, page.complete, page.more) == (b"line\n" * 3, False, True)
    assert 3 < page.total_lines < 100_000
    (tmp_path / "b").write_bytes(b"line\n")
    assert Reader(FsBoundary(tmp_path), Limits(page_seconds=0)).page("b").complete


def test_read_that_takes_too_long_warns_about_uncounted_lines(root: Path) -> None:
    (root / "a").write_bytes(b"line\n" * 100_000)
    with Workspace(str(root), limits={"page_seconds": 0}) as workspace:
        result = workspace.call("codex", "read_file", {"path": "a", "limit": 1})
    assert result.success
    assert result.warnings == [
        "the file is very large: counting its lines stopped after 0 seconds; there may be more lines"
    ]
