"""Recognizes protected files by their identity when names and contents change and trees are odd."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail import Workspace
from handrail.kernel.fs import protection_scan
from handrail.kernel.fs.protected_files import OWN_RULE, ProtectedFiles
from handrail.kernel.fs.protection_scan import ProtectedNode
from handrail.kernel.host.remembered_files import RememberedFiles
from handrail.model.faults import ProtectedPath
from handrail.model.limits import Limits
from handrail.ops.glob.protected_names import Protection, protection

Guard = Callable[..., ProtectedFiles]
SELDOM = Limits(protect_seconds=3600)


def statx_tells_birth(path: Path) -> bool:
    return subprocess.check_output(["stat", "-c", "%W", path]).strip() not in (b"0", b"-")


@pytest.fixture
def guard(root: Path) -> Iterator[Guard]:
    """Return a function that makes ProtectedFiles for a tree with two secrets; they scan it only when they must."""
    (root / ".env").write_text("secret\n")
    (root / "vault").mkdir()
    (root / "vault/x").write_text("secret\n")
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)

    def made(rules: Protection | None = None, *own: str) -> ProtectedFiles:
        return ProtectedFiles(fd, protection((".env", "vault/")) if rules is None else rules, SELDOM, own)

    yield made
    os.close(fd)


def test_masks_include_top_protected_paths_and_their_hard_links(guard: Guard, root: Path) -> None:
    protected = guard()
    assert protected.masks().keys() == {".env", "vault"}
    os.link(root / "vault/x", root / "twin")
    (root / "sub").mkdir()
    assert protected.masks().keys() == {".env", "vault", "twin"}


def test_protected_link_protects_its_existing_target(guard: Guard, root: Path) -> None:
    (root / "real.txt").write_text("secret\n")
    (root / "open").mkdir()
    (root / "open/file.txt").write_text("public\n")
    for number, target in enumerate(("../real.txt", "../open", "../missing")):
        (root / f"sub{number}").mkdir()
        (root / f"sub{number}/.env").symlink_to(target)
    protected = guard()
    assert protected.hides("real.txt")
    assert protected.hides("open/file.txt")
    assert protected.masks().keys() == {".env", "vault", "real.txt", "open"}


def test_protected_link_to_outside_is_masked_itself(guard: Guard, root: Path, tmp_path: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub/.env").symlink_to(tmp_path)
    assert guard().masks().keys() == {".env", "vault", "sub/.env"}


def test_edited_hard_link_stays_protected(guard: Guard, root: Path) -> None:
    os.link(root / ".env", root / "twin")
    protected = guard()
    assert protected.hides("twin")
    (root / "twin").write_text("edited in place, by its other name\n")
    with pytest.raises(ProtectedPath) as raised:
        protected.check_file("twin", (root / "twin").stat())
    assert raised.value.rule == ".env"
    assert protected.hides("twin")


def test_moved_and_edited_file_is_recognized_by_birth_time(guard: Guard, root: Path) -> None:
    protected = guard()
    assert not protected.hides("moved")
    (root / ".env").rename(root / "moved")
    (root / "moved").write_text("something else, of another length\n")
    known = statx_tells_birth(root / "moved")
    assert protected.hides("moved") is known
    assert protected.masks().keys() == {"vault", *(["moved"] if known else [])}


def test_moved_and_edited_file_is_not_recognized_without_birth_time(
    guard: Guard, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protection_scan, "libc_function", lambda _name: None)
    protected = guard()
    assert not protected.hides("moved")
    (root / ".env").rename(root / "moved")
    assert protected.hides("moved")
    (root / "moved").write_text("something else, of another length\n")
    assert not protected.hides("moved")


def test_missing_path_is_hidden_only_by_its_name(guard: Guard) -> None:
    protected = guard()
    assert protected.hides("missing/.env")
    assert not protected.hides("missing")
    assert not protected.hides("vaults/x")


def test_tree_too_deep_to_name_is_hidden_and_does_not_stop_scan(guard: Guard, root: Path) -> None:
    fd = os.open(root, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=fd)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    protected = guard()
    assert protected.masks().keys() == {".env", "vault"}
    assert protected.hides("/".join(["d" * 200] * 25))  # its kind is unknown


class Vanishing(Protection):
    """Deletes every file right after it was listed."""

    def __init__(self, root: Path) -> None:
        super().__init__([".env"])
        self._root = root

    def rule_for(self, path: str) -> str:
        (self._root / path).unlink(missing_ok=True)
        return super().rule_for(path)


def test_file_deleted_during_scan_is_skipped(guard: Guard, root: Path) -> None:
    (root / "vault/x").unlink()
    (root / "vault").rmdir()
    assert guard(Vanishing(root)).masks() == {}


def test_own_directories_are_protected_without_rules(guard: Guard) -> None:
    protected = guard(Protection([]), "conf/ours")
    assert protected.hides("conf/OURS/approvals.toml")
    assert not protected.hides("conf/others")
    with pytest.raises(ProtectedPath) as raised:
        protected.check_name("conf/ours", "conf/ours")
    assert raised.value.rule == OWN_RULE


def test_remembered_files_keep_newest_and_drop_deleted(tmp_path: Path) -> None:
    kept = RememberedFiles(str(tmp_path / "state/protected.json"), most=3)
    one, two, three, four = (ProtectedNode("*.key", number, 5, 6) for number in range(4))
    assert kept.read() == {}
    kept.update({1: one, 2: two}, gone=set())
    kept.update({3: three}, gone={1})
    assert kept.read() == {2: two, 3: three}
    kept.update({2: two, 4: four, 5: one}, gone=set())
    assert kept.read() == {2: two, 4: four, 5: one}


@pytest.mark.parametrize("text", ["{", "[]", '{"1": 2}', '{"1": ["a"]}', '{"x": ["a", 1, 2, 3]}'])
def test_damaged_memory_is_warned_about_and_written_again(root: Path, text: str) -> None:
    (root / "a.key").touch()
    with Workspace(str(root), approve="auto", protect=["*.key"], sandbox="off") as workspace:
        path = Path(workspace._services.state.path) / "protected.json"
        path.write_text(text)
        warnings = workspace.call("codex", "shell", {"command": "true"}).warnings
    assert any("the list from earlier sessions is lost" in each for each in warnings), warnings
    with Workspace(str(root), protect=["*.key"]) as workspace:
        assert workspace.call("copilot", "read_file", {"path": "a.key"}).error
    assert len(RememberedFiles(str(path), 9).read()) == 1


def test_unwritable_memory_is_warned_about_with_command(root: Path) -> None:
    (root / "a.key").touch()
    with Workspace(str(root), approve="auto", protect=["*.key"], sandbox="off") as workspace:
        (Path(workspace._services.state.path) / "protected.json").mkdir()
        assert not workspace.call("copilot", "read_file", {"path": "a.txt"}).success
        warnings = workspace.call("codex", "shell", {"command": "true"}).warnings
    assert any("is moved, later sessions may read it" in each for each in warnings), warnings
