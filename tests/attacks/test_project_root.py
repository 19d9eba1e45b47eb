"""Checks that the search for the root never takes a home directory, or a directory that another user prepared."""

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.kernel.host.project_root import MARKERS, FoundRoot, RootRefused, find_root

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="giving files away takes privileges")
OTHER_USER = 1234
SETTINGS, GIT = MARKERS


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home for the user. It ends every search, so that directories above the temporary one do not matter."""
    made = tmp_path / "home"
    made.mkdir()
    monkeypatch.setenv("HOME", str(made))
    return made


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Path]:
    def go(directory: Path) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(directory)
        return directory

    return go


Go = Callable[[Path], Path]


def mark(directory: Path, name: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    made = directory / name
    if name == GIT:
        made.mkdir()
    else:
        made.write_text("")
    return made


def refusal() -> tuple[str, str]:
    with pytest.raises(RootRefused) as refused:
        find_root()
    return refused.value.path, refused.value.why


@pytest.mark.parametrize(
    ("marked", "found"),
    [
        ([], FoundRoot(".")),
        ([("a/b/c", GIT)], FoundRoot(".", GIT)),
        ([("a/b", GIT)], FoundRoot("a/b", GIT)),
        ([("a", GIT), ("a/b", GIT)], FoundRoot("a/b", GIT)),
        ([("a", SETTINGS), ("a/b", SETTINGS)], FoundRoot("a/b", SETTINGS)),
        ([("a", SETTINGS), ("a/b", GIT)], FoundRoot("a", SETTINGS)),
        ([("a", GIT), ("a/b", SETTINGS)], FoundRoot("a/b", SETTINGS)),
        ([("a/x", GIT)], FoundRoot(".")),
    ],
)
def test_find_root_takes_nearest_marker(
    marked: list[tuple[str, str]], found: FoundRoot, home: Path, stand_in: Go
) -> None:
    stand_in(home / "a/b/c")
    for place, name in marked:
        mark(home / place, name)
    there = found.path if found.path == "." else str(home / found.path)
    assert find_root() == found._replace(path=there)


def test_find_root_counts_git_file_of_worktree(home: Path, stand_in: Go) -> None:
    stand_in(home / "tree/src")
    (home / "tree" / GIT).write_text("gitdir: /somewhere\n")
    assert find_root() == FoundRoot(str(home / "tree"), GIT)


@pytest.mark.parametrize("name", MARKERS)
def test_find_root_ignores_marker_in_home(name: str, home: Path, stand_in: Go) -> None:
    mark(home, name)
    mark(home.parent, name)
    stand_in(home / "project/src")
    assert find_root() == FoundRoot(".")


@pytest.mark.parametrize("name", MARKERS)
def test_find_root_in_home_or_above_refuses(name: str, home: Path, stand_in: Go) -> None:
    mark(home, name)
    for place in (home, home.parent, Path("/")):
        stand_in(place)
        assert refusal() == (str(place), "home")


def test_find_root_recognizes_home_named_through_link(
    home: Path, stand_in: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home.parent / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(home.parent / "link" / "." / ""))
    mark(home, GIT)
    stand_in(home / "project")
    assert find_root() == FoundRoot(".")
    stand_in(home)
    assert refusal() == (str(home), "home")


@pytest.mark.parametrize("variable", [None, "", "relative", "/nowhere/at/all"])
def test_find_root_recognizes_home_of_account(variable: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    homes = [Path(each.pw_dir) for each in pwd.getpwall() if each.pw_uid == os.getuid()]
    if not homes or not os.access(homes[0], os.X_OK):
        pytest.skip("this user has no account, or no home directory")
    account = homes[0]
    monkeypatch.delenv("HOME", raising=False)
    if variable is not None:
        monkeypatch.setenv("HOME", variable)
    monkeypatch.chdir(account)
    assert refusal() == (str(account.resolve()), "home")


def test_find_root_works_for_user_without_account_or_home(
    home: Path, stand_in: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    accounts = {each.pw_uid for each in pwd.getpwall()}
    monkeypatch.setattr("os.getuid", lambda: max(accounts) + 1)
    mark(home, GIT)
    stand_in(home / "src")
    assert find_root() == FoundRoot(str(home), GIT)


def test_find_root_in_linked_directory_searches_real_parents(home: Path, stand_in: Go) -> None:
    mark(home / "named", GIT)
    mark(home / "real", SETTINGS)
    (home / "real/src").mkdir()
    (home / "named/link").symlink_to(home / "real/src")
    stand_in(home / "named/link")
    assert find_root() == FoundRoot(str(home / "real"), SETTINGS)


def test_find_root_in_link_to_home_refuses(home: Path, stand_in: Go) -> None:
    mark(home / "project", GIT)
    (home / "project/link").symlink_to(home)
    stand_in(home / "project/link")
    assert refusal() == (str(home), "home")


def test_find_root_in_deleted_directory_refuses(home: Path, stand_in: Go) -> None:
    stand_in(home / "gone").rmdir()
    assert refusal() == (".", "gone")


def test_find_root_ignores_marker_in_public_directory(home: Path, stand_in: Go) -> None:
    mark(home / "tmp", GIT)
    (home / "tmp").chmod(0o1777)
    stand_in(home / "tmp/work")
    assert find_root() == FoundRoot(".")


def test_find_root_in_directory_of_another_user_refuses(
    home: Path, stand_in: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = stand_in(home / "project")
    mark(here, GIT)
    monkeypatch.setattr("os.geteuid", lambda: OTHER_USER)
    assert refusal() == (str(here), "other_user")


@ROOT_ONLY
@pytest.mark.parametrize("name", MARKERS)
@pytest.mark.parametrize("theirs", ["a", "a/b", "a/b/c"])
def test_find_root_stops_below_directory_of_another_user(theirs: str, name: str, home: Path, stand_in: Go) -> None:
    stand_in(home / "a/b/c/d")
    for place in ("a", theirs):
        if not (home / place / name).exists():
            mark(home / place, name)
    os.chown(home / theirs, OTHER_USER, OTHER_USER)
    assert find_root() == FoundRoot(".")


@ROOT_ONLY
@pytest.mark.parametrize("name", MARKERS)
def test_find_root_ignores_marker_of_another_user(name: str, home: Path, stand_in: Go) -> None:
    os.chown(mark(home / "project", name), OTHER_USER, OTHER_USER)
    stand_in(home / "project/src")
    assert find_root() == FoundRoot(".")


@ROOT_ONLY
def test_find_root_ignores_marker_linked_by_another_user(home: Path, stand_in: Go) -> None:
    own = mark(home / "own", GIT)
    stand_in(home / "project/src")
    link = home / "project" / GIT
    link.symlink_to(own)
    os.chown(link, OTHER_USER, OTHER_USER, follow_symlinks=False)
    assert find_root() == FoundRoot(".")
