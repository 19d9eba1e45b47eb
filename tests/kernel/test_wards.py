"""Protected files by identity, where names and contents change and trees are odd."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail.faults import ProtectedPath
from handrail.kernel.wards import OWN_RULE, Wards
from handrail.limits import Limits
from handrail.ops.protection import Protection, protection

Guard = Callable[..., Wards]
SELDOM = Limits(protect_seconds=3600)


@pytest.fixture
def guard(root: Path) -> Iterator[Guard]:
    """Wards over a tree with two secrets, which look it over only when they must."""
    (root / ".env").write_text("secret\n")
    (root / "vault").mkdir()
    (root / "vault/x").write_text("secret\n")
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)

    def made(rules: Protection | None = None, *own: str) -> Wards:
        return Wards(fd, protection((".env", "vault/")) if rules is None else rules, SELDOM, own)

    yield made
    os.close(fd)


def test_the_outermost_names_are_to_be_covered_and_every_other_name_of_their_files(guard: Guard, root: Path) -> None:
    wards = guard()
    assert wards.masks().keys() == {".env", "vault"}
    os.link(root / "vault/x", root / "twin")
    (root / "sub").mkdir()
    assert wards.masks().keys() == {".env", "vault", "twin"}


def test_a_protected_link_protects_a_file_but_no_directory_and_not_what_is_missing(guard: Guard, root: Path) -> None:
    (root / "real.txt").write_text("secret\n")
    (root / "open").mkdir()
    (root / "open/file.txt").write_text("public\n")
    for number, target in enumerate(("../real.txt", "../open", "../missing")):
        (root / f"sub{number}").mkdir()
        (root / f"sub{number}/.env").symlink_to(target)
    wards = guard()
    assert wards.hides("real.txt")
    assert not wards.hides("open/file.txt")
    assert wards.masks().keys() == {".env", "vault", "sub0/.env", "sub1/.env", "sub2/.env"}


def test_a_twin_that_is_edited_is_still_the_same_file(guard: Guard, root: Path) -> None:
    os.link(root / ".env", root / "twin")
    wards = guard()
    assert wards.hides("twin")
    (root / "twin").write_text("edited in place, by its other name\n")
    with pytest.raises(ProtectedPath) as raised:
        wards.check_file("twin", (root / "twin").stat())
    assert raised.value.rule == ".env"
    assert wards.hides("twin")


def test_a_secret_that_is_moved_away_and_edited_there_cannot_be_known_any_more(guard: Guard, root: Path) -> None:
    wards = guard()
    assert not wards.hides("moved")
    (root / ".env").rename(root / "moved")
    assert wards.hides("moved")
    (root / "moved").write_text("something else, of another length\n")
    assert not wards.hides("moved")


def test_what_is_not_there_is_hidden_only_by_its_name(guard: Guard) -> None:
    wards = guard()
    assert wards.hides("missing/.env")
    assert not wards.hides("missing")
    assert not wards.hides("vaults/x")


def test_a_tree_too_deep_to_name_does_not_stop_a_look(guard: Guard, root: Path) -> None:
    fd = os.open(root, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=fd)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    wards = guard()
    assert wards.masks().keys() == {".env", "vault"}
    assert not wards.hides("/".join(["d" * 200] * 25))


class Vanishing(Protection):
    """Takes every file away right after it was listed."""

    def __init__(self, root: Path) -> None:
        super().__init__([".env"])
        self._root = root

    def rule_for(self, path: str) -> str:
        (self._root / path).unlink(missing_ok=True)
        return super().rule_for(path)


def test_a_file_that_goes_while_it_is_looked_at_is_passed_over(guard: Guard, root: Path) -> None:
    (root / "vault/x").unlink()
    (root / "vault").rmdir()
    assert guard(Vanishing(root)).masks() == {}


def test_our_own_places_are_kept_without_any_rule(guard: Guard) -> None:
    wards = guard(Protection([]), "conf/ours")
    assert wards.hides("conf/OURS/approvals.toml")
    assert not wards.hides("conf/others")
    with pytest.raises(ProtectedPath) as raised:
        wards.check_name("conf/ours", "conf/ours")
    assert raised.value.rule == OWN_RULE
