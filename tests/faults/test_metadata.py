"""Checks that an edit keeps owner, permissions and other metadata of a file."""

import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.ordinary_user import as_ordinary_user
from support.writer import commit

from handrail import Workspace
from handrail.model.files import Put

_SET_FLAGS, _IMMUTABLE = 0x40086602, 0x10


def edit(workspace: Workspace, path: str) -> None:
    """Change a file by a patch, then by a write."""
    for tool, rest in (
        ("file.patch", {"patches": [{"find": "old", "replace": "new"}]}),
        ("file.write", {"content": "whole\n"}),
    ):
        result = workspace.call("file", tool, {"path": path, **rest})
        assert result.success, result


def code(workspace: Workspace, tool: str, **params: Any) -> str:
    error = workspace.call("file", tool, params).error
    return error.code if error else "ok"


@pytest.fixture
def file(root: Path) -> Path:
    path = root / "file.txt"
    path.write_text("old\n")
    return path


def acl(*users: tuple[int, int]) -> bytes:
    """Return an access list in the format of the kernel: owner, some users, group, mask, others."""
    named = [(0x02, rights, uid) for uid, rights in users]
    entries = [(0x01, 6, -1), *named, (0x04, 4, -1), (0x10, 6, -1), (0x20, 0, -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)


def set_or_skip(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"no {name} here: {error}")


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o711, 0o1644, 0o2644, 0o666])
def test_edit_keeps_mode(workspace: Workspace, file: Path, mode: int) -> None:
    file.chmod(mode)
    edit(workspace, "file.txt")
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_new_file_takes_mode_from_umask(workspace: Workspace, root: Path) -> None:
    for mask in (0o022, 0o077, 0o002):
        before = os.umask(mask)
        try:
            assert code(workspace, "file.write", path=f"new-{mask}/file", content="x") == "ok"
        finally:
            os.umask(before)
        assert stat.S_IMODE((root / f"new-{mask}" / "file").stat().st_mode) == 0o666 & ~mask
        assert stat.S_IMODE((root / f"new-{mask}").stat().st_mode) == 0o777 & ~mask


def test_edit_ignores_umask(workspace: Workspace, file: Path) -> None:
    file.chmod(0o666)
    before = os.umask(0o077)
    try:
        edit(workspace, "file.txt")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666


def test_new_file_with_executable_mode_can_be_run(workspace: Workspace, root: Path) -> None:
    changes: Any = [Put("run.sh", b"#!/bin/sh\n", mode=0o755)]
    commit(workspace._services.writer, changes, ["run.sh"])
    assert os.access(root / "run.sh", os.X_OK)


def test_change_of_mode_alone_is_written(workspace: Workspace, file: Path) -> None:
    base = workspace._services.reader.read("file.txt")
    commit(workspace._services.writer, [Put("file.txt", base.data, base, mode=0o700)], ["file.txt"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o700


@pytest.mark.root
def test_edit_keeps_owner(workspace: Workspace, file: Path) -> None:
    os.chown(file, 1234, 2345)
    file.chmod(0o751)
    edit(workspace, "file.txt")
    now = file.stat()
    assert (now.st_uid, now.st_gid, stat.S_IMODE(now.st_mode)) == (1234, 2345, 0o751)


@pytest.mark.root
def test_edit_keeps_group_in_directory_with_set_group_id(workspace: Workspace, root: Path) -> None:
    directory = root / "shared"
    directory.mkdir()
    os.chown(directory, 0, 2345)
    directory.chmod(0o2775)
    (directory / "file.txt").write_text("old\n")
    os.chown(directory / "file.txt", 0, 0)
    edit(workspace, "shared/file.txt")
    assert (directory / "file.txt").stat().st_gid == 0


@pytest.mark.root
def test_writable_file_of_another_user_can_be_edited() -> None:
    """Only root may give files away: it is the editor's now, and everything else about it stayed."""
    assert as_ordinary_user(_edit_a_strangers_file, "strangers.txt") == ("ok", "ours", 0o666)


def _edit_a_strangers_file(root: str) -> tuple[str, str, int]:
    with Workspace(root, approve="auto") as workspace:
        answer = code(workspace, "file.write", path="strangers.txt", content="new")
    found = os.stat(f"{root}/strangers.txt")
    return answer, "ours" if found.st_uid == os.geteuid() else "theirs", stat.S_IMODE(found.st_mode)


def test_edit_keeps_extended_attributes(workspace: Workspace, file: Path) -> None:
    set_or_skip(file, "user.colour", b"blue")
    set_or_skip(file, "user.empty", b"")
    edit(workspace, "file.txt")
    assert {name: os.getxattr(file, name) for name in os.listxattr(file)} == {"user.colour": b"blue", "user.empty": b""}


def test_edit_keeps_access_list(workspace: Workspace, file: Path) -> None:
    wanted = acl((1234, 6))
    set_or_skip(file, "system.posix_acl_access", wanted)
    edit(workspace, "file.txt")
    assert os.getxattr(file, "system.posix_acl_access") == wanted
    assert stat.S_IMODE(file.stat().st_mode) == 0o660


def test_requested_mode_applies_to_file_with_access_list(workspace: Workspace, file: Path) -> None:
    set_or_skip(file, "system.posix_acl_access", acl((1234, 6)))
    base = workspace._services.reader.read("file.txt")
    commit(workspace._services.writer, [Put("file.txt", b"new", base, mode=0o750)], ["file.txt"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o750


def test_edit_adds_no_default_access_list_of_directory(workspace: Workspace, root: Path, file: Path) -> None:
    set_or_skip(root, "system.posix_acl_default", acl((1234, 6)))
    edit(workspace, "file.txt")
    assert os.listxattr(file) == []
    assert code(workspace, "file.write", path="new.txt", content="x") == "ok"
    assert os.listxattr(root / "new.txt") == ["system.posix_acl_access"]


def test_edit_through_link_keeps_link_and_changes_target(workspace: Workspace, root: Path, file: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "link").symlink_to("../file.txt")
    edit(workspace, "sub/link")
    assert os.readlink(root / "sub" / "link") == "../file.txt"
    assert file.read_text() == "whole\n"
    assert sorted(os.listdir(root)) == ["file.txt", "sub"]


def test_edit_leaves_other_hard_link_unchanged(workspace: Workspace, root: Path, file: Path) -> None:
    os.link(file, root / "twin.txt")
    edit(workspace, "file.txt")
    assert (root / "twin.txt").read_text() == "old\n"
    assert (root / "twin.txt").stat().st_nlink == 1


def _refusals(root: str) -> dict[str, str]:
    """Return the answers for a tree in which each kind of permission is missing somewhere; needs an ordinary user."""
    os.mkdir(f"{root}/closed")
    os.mkdir(f"{root}/secret")
    for name in ("read-only.txt", "unreadable.txt", "closed/file.txt", "secret/file.txt"):
        with open(f"{root}/{name}", "w") as file:
            file.write("old\n")
    modes = {"read-only.txt": 0o444, "unreadable.txt": 0, "closed": 0o555, "secret": 0}
    for name, mode in modes.items():
        os.chmod(f"{root}/{name}", mode)
    with Workspace(root, approve="auto") as workspace:
        answers = {
            "replace a 0444 file": code(workspace, "file.write", path="read-only.txt", content="x"),
            "patch a 0444 file": code(
                workspace, "file.patch", path="read-only.txt", patches=[{"find": "old", "replace": "x"}]
            ),
            "read an unreadable file": code(workspace, "file.read", path="unreadable.txt"),
            "replace an unreadable file": code(workspace, "file.write", path="unreadable.txt", content="x"),
            "replace in a closed directory": code(workspace, "file.write", path="closed/file.txt", content="x"),
            "create in a closed directory": code(workspace, "file.write", path="closed/new.txt", content="x"),
            "make a directory in one": code(workspace, "file.write", path="closed/a/b.txt", content="x"),
            "delete in a closed directory": code(workspace, "file.delete", path="closed/file.txt"),
            "read in a secret directory": code(workspace, "file.read", path="secret/file.txt"),
            "list a secret directory": code(workspace, "file.list", path="secret"),
        }
    os.chmod(f"{root}/secret", 0o700)
    for name in ("read-only.txt", "closed/file.txt", "secret/file.txt"):
        with open(f"{root}/{name}") as file:
            assert file.read() == "old\n"
    assert sorted(os.listdir(root)) == ["closed", "read-only.txt", "secret", "unreadable.txt"]
    assert os.listdir(f"{root}/closed") == ["file.txt"]
    return answers


def test_missing_permission_is_refused_and_nothing_changes() -> None:
    writes = ("replace", "create", "make", "write")
    for what, answer in as_ordinary_user(_refusals).items():
        assert answer == ("write_failed" if what.startswith(writes) else "permission_denied"), what


@pytest.fixture
def immutable(file: Path) -> Iterator[Path]:
    handle = os.open(file, os.O_RDONLY)
    try:
        fcntl.ioctl(handle, _SET_FLAGS, struct.pack("l", _IMMUTABLE))
    except OSError as error:
        os.close(handle)
        pytest.skip(f"no immutable files here: {error}")
    yield file
    fcntl.ioctl(handle, _SET_FLAGS, struct.pack("l", 0))
    os.close(handle)


def test_immutable_file_is_refused(workspace: Workspace, root: Path, immutable: Path) -> None:
    assert code(workspace, "file.write", path="file.txt", content="x") == "write_failed"
    assert code(workspace, "file.delete", path="file.txt") == "permission_denied"
    assert os.listdir(root) == ["file.txt"]
    assert immutable.read_text() == "old\n"
