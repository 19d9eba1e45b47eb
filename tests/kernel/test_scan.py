"""Checks that the scan around a command finds all changes, with and without reports from the system."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.journal import inotify
from handrail.kernel.journal import scanner as scan_module
from handrail.kernel.journal.scanner import Scan
from handrail.model.limits import Limits


@pytest.fixture(params=["reported", "looked for"])
def scan(request: pytest.FixtureRequest, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Scan]]:
    if request.param == "looked for":
        monkeypatch.setattr(inotify, "_LOCAL", set())
    fd = os.open(root, os.O_RDONLY)
    opened = []

    def make(**limits: int) -> Scan:
        opened.append(Scan(fd, Limits(**{"scan_ignored_files": 0} | limits)))
        opened[-1].changed()
        return opened[-1]

    yield make
    for each in opened:
        each.close()
    os.close(fd)


def found(scan: Scan) -> dict[str, str]:
    words = {(False, True): "new", (True, False): "gone", (True, True): "changed"}
    return {path: words[old is not None, new is not None] for path, (old, new) in scan.changed().items() if old != new}


@pytest.fixture
def tree(root: Path) -> Path:
    for name in ("a", "d/b", "d/e/c", "node_modules/x", ".git/config", "logs/l", "deep/logs/l"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "link").symlink_to("a")
    (root / ".gitignore").write_text("logs/\n*.o\n")
    return root


def test_first_scan_finds_everything_but_excluded_directories(scan: Callable[..., Scan], tree: Path) -> None:
    made = scan()
    assert sorted(path for path, _ in made.fingerprints()) == [".gitignore", "a", "d/b", "d/e/c", "link"]
    assert found(made) == {}


def test_scan_finds_every_kind_of_change(scan: Callable[..., Scan], tree: Path) -> None:
    made = scan()
    (tree / "a").write_text("changed")
    assert found(made) == {"a": "changed"}
    (tree / "d" / "b").unlink()
    (tree / "d" / "x.o").write_text("ignored files count: only directories are left out")
    os.chmod(tree / "d" / "e" / "c", 0o700)
    assert found(made) == {"d/b": "gone", "d/x.o": "new", "d/e/c": "changed"}
    (tree / "d").rename(tree / "f")
    inside = ("", "/e", "/e/c", "/x.o")
    assert found(made) == {**{f"d{each}": "gone" for each in inside}, **{f"f{each}": "new" for each in inside}}
    (tree / "f" / "e" / "c").write_text("in a directory that was moved")
    (tree / "f" / "e" / "new").mkdir()
    (tree / "f" / "e" / "new" / "file").write_text("x")
    assert found(made) == {"f/e/c": "changed", "f/e/new": "new", "f/e/new/file": "new"}
    (tree / "f" / "e" / "new" / "file").write_text("again, in a directory that is new")
    assert found(made) == {"f/e/new/file": "changed"}
    (tree / "link").unlink()
    (tree / "link").symlink_to("f")
    assert found(made) == {"link": "changed"}
    os.mkfifo(tree / "fifo")
    (tree / ".handrail-123-1-0.new").write_text("a commit on its way")
    for name in ("node_modules/x", ".git/config", "logs/l", "deep/logs/l"):
        (tree / name).write_text("not looked into")
    assert found(made) == {}


def test_scan_finds_replacement_with_same_size_and_date(scan: Callable[..., Scan], tree: Path) -> None:
    made = scan()
    about = (tree / "a").stat()
    (tree / "new").write_text("A")
    os.utime(tree / "new", ns=(about.st_atime_ns, about.st_mtime_ns))
    (tree / "new").rename(tree / "a")
    assert found(made) == {"a": "changed"}


def test_file_written_just_before_scan_is_checked_again(
    scan: Callable[..., Scan], tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_module, "_TICK_NS", 3_600 * 10**9)  # on a busy machine the scan may come late
    (tree / "a").write_text("1")
    made = scan()
    (tree / "d" / "z").write_text("so that something happened there")
    (tree / "y").write_text("the same")
    changed = made.changed()
    assert changed["a"][0] == changed["a"][1]


def test_scan_finds_change_through_hard_link(scan: Callable[..., Scan], tree: Path) -> None:
    (tree / "node_modules" / "twin").hardlink_to(tree / "a")
    made = scan()
    (tree / "node_modules" / "twin").write_text("longer than it was")
    assert found(made) == {"a": "changed"}


def test_changed_ignore_rules_report_no_deleted_or_new_files(scan: Callable[..., Scan], tree: Path) -> None:
    made = scan()
    (tree / ".gitignore").write_text("d/\n")
    assert found(made) == {".gitignore": "changed"}
    (tree / "d" / "b").write_text("no longer looked at")
    (tree / "logs" / "l").write_text("looked at from now on")
    assert found(made) == {"logs/l": "changed"}


def test_scan_beyond_file_limit_is_marked_as_cut(scan: Callable[..., Scan], tree: Path) -> None:
    assert not scan().cut
    assert scan(scan_files=2).cut


def test_scan_of_too_many_directories_works_without_watches(scan: Callable[..., Scan], tree: Path) -> None:
    made = scan(scan_directories=1)
    assert not made._watcher.works
    (tree / "d" / "b").write_text("changed")
    assert found(made) == {"d/b": "changed"}


def test_scan_misses_nothing_when_event_queue_overflows(
    scan: Callable[..., Scan], tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = scan()
    monkeypatch.setattr(inotify, "_OVERFLOW", inotify._CREATE)
    (tree / "d" / "new").write_text("x")
    (tree / "a").write_text("changed")
    assert found(made) == {"d/new": "new", "a": "changed"}
    monkeypatch.undo()
    (tree / "a").write_text("changed again")
    assert found(made) == {"a": "changed"}


class Unreadable:
    """Replaces the os module: one directory cannot be read."""

    def __init__(self, name: str, call: str) -> None:
        self._name, self._call = name, call

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)

        def call(*args: Any, **options: Any) -> Any:
            if name == self._call and (args[0] == self._name or self._holds(args[0])):
                raise PermissionError(13, "not to be read")
            return real(*args, **options)

        return call if name == self._call else real

    def _holds(self, fd: object) -> bool:
        return isinstance(fd, int) and os.readlink(f"/proc/self/fd/{fd}").endswith(f"/{self._name}")


@pytest.mark.parametrize("call", ["open", "scandir"])
def test_unreadable_directory_is_skipped(
    scan: Callable[..., Scan], tree: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setattr(scan_module, "os", Unreadable("d", call))
    made = scan()
    assert sorted(path for path, _ in made.fingerprints()) == [".gitignore", "a", "link"]
    (tree / "a").write_text("changed")
    assert found(made) == {"a": "changed"}


def test_directory_that_becomes_unreadable_counts_as_deleted(
    scan: Callable[..., Scan], tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = scan()
    monkeypatch.setattr(scan_module, "os", Unreadable("e", "open"))
    (tree / "d" / "e" / "c").write_text("changed")
    (tree / "d" / "b").write_text("changed")
    assert found(made) == {"d/b": "changed", "d/e": "gone", "d/e/c": "gone"}


def test_scan_does_not_enter_too_deep_directories(scan: Callable[..., Scan], tree: Path) -> None:
    made = scan(scan_depth=1)
    assert made.cut
    assert sorted(path for path, _ in made.fingerprints()) == [".gitignore", "a", "d/b", "link"]


def test_directory_replaced_by_file_is_reported_with_its_contents(scan: Callable[..., Scan], tree: Path) -> None:
    made = scan()
    (tree / "d" / "b").unlink()
    (tree / "d" / "e" / "c").unlink()
    (tree / "d" / "e").rmdir()
    (tree / "d").rmdir()
    (tree / "d").write_text("a file now")
    changed = made.changed()
    assert {path for path, (old, new) in changed.items() if old != new} == {"d", "d/b", "d/e", "d/e/c"}
    assert changed["d"][1] is not None


def test_scan_enters_directory_that_replaced_another(scan: Callable[..., Scan], tree: Path) -> None:
    made = scan()
    (tree / "d" / "e" / "c").unlink()
    assert found(made) == {"d/e/c": "gone"}
    os.rmdir(tree / "d" / "e")
    (tree / "d" / "e").mkdir()
    (tree / "d" / "e" / "new").write_text("")
    assert found(made) == {"d/e/new": "new"}
    os.rename(tree / "d", tree / "old")
    (tree / "d" / "e").mkdir(parents=True)
    (tree / "d" / "e" / "newer").write_text("")
    assert found(made) == {
        "d/b": "gone", "d/e/new": "gone", "d/e/newer": "new",
        "old": "new", "old/b": "new", "old/e": "new", "old/e/new": "new",
    }  # fmt: skip
    (tree / "d" / "e" / "newest").write_text("")
    (tree / "old" / "e" / "x").write_text("")
    assert found(made) == {"d/e/newest": "new", "old/e/x": "new"}


def test_scan_counts_directories_for_its_limit(scan: Callable[..., Scan], tree: Path) -> None:
    """A command can make millions of empty directories."""
    for number in range(20):
        (tree / f"empty{number}").mkdir()
    assert not scan(scan_files=100).cut
    limited = scan(scan_files=10)
    assert limited.cut
    assert len(limited._known) <= 10


def test_scan_lists_no_more_of_one_directory_than_its_limit(scan: Callable[..., Scan], tree: Path) -> None:
    for number in range(50):
        (tree / f"many{number}").touch()
    limited = scan(scan_files=20)
    assert limited.cut
    assert sum(1 for _ in limited.fingerprints()) <= 21
