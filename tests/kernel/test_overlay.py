"""Tests the overlay mount and the directories of an upper layer."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.layers import deny_user_namespaces, needs_overlays, own_proc_files
from support.ordinary_user import as_ordinary_user

from handrail.kernel.layers.overlay import Mount, OverlayRefused, refusal, refusal_in
from handrail.kernel.layers.upper import LayerBusy, Upper, clear

pytestmark = needs_overlays


@pytest.fixture
def lower(tmp_path: Path) -> Path:
    path = tmp_path / "lower dir,a:b"
    path.mkdir()
    (path / "a").write_text("old\n")
    return path


@pytest.fixture
def handle(lower: Path) -> Iterator[int]:
    fd = os.open(lower, os.O_PATH)
    yield fd
    os.close(fd)


def read(fd: int, name: str) -> bytes:
    with open(os.open(name, os.O_RDONLY, dir_fd=fd), "rb") as file:
        return file.read()


def write(fd: int, name: str, data: bytes) -> None:
    with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=fd), "wb") as file:
        file.write(data)


def test_mount_shows_lower_and_keeps_it_unchanged(tmp_path: Path, lower: Path, handle: int) -> None:
    with Upper.open(f"{tmp_path}/layer") as upper, upper.mount([handle], str(lower)) as mount:
        write(mount.fd, "a", b"new\n")
        write(mount.fd, "b", b"more\n")
        assert sorted(os.listdir(mount.fd)) == ["a", "b"]
        assert os.listdir(lower) == ["a"]
        assert (lower / "a").read_text() == "old\n"


def test_mount_again_shows_the_same_changes(tmp_path: Path, lower: Path, handle: int) -> None:
    for content in (b"1", b"2"):
        with Upper.open(f"{tmp_path}/layer") as upper, upper.mount([handle], str(lower)) as mount:
            if content == b"2":
                assert read(mount.fd, "a") == b"1"
            write(mount.fd, "a", content)


def test_mount_stacks_lowers_and_top_one_wins(tmp_path: Path, lower: Path, handle: int) -> None:
    (tmp_path / "middle").mkdir()
    (tmp_path / "middle/a").write_text("middle\n")
    middle = os.open(tmp_path / "middle", os.O_PATH)
    with Upper.open(f"{tmp_path}/layer") as upper, upper.mount([middle, handle], str(lower)) as mount:
        assert read(mount.fd, "a") == b"middle\n"
    with Mount.make([middle, handle], None, None, str(lower)) as view:
        assert read(view.fd, "a") == b"middle\n"
        with pytest.raises(OSError, match="Read-only"):
            write(view.fd, "b", b"")
    os.close(middle)


def test_program_that_enters_finds_view_at_path_and_no_handle(tmp_path: Path, lower: Path, handle: int) -> None:
    with Upper.open(f"{tmp_path}/layer") as upper, upper.mount([handle], str(lower)) as mount:
        script = 'cat "$0/a"; echo new >"$0/a"; ls /proc/self/fd'
        done = subprocess.run([*mount.entering(), "/bin/sh", "-c", script, lower], capture_output=True, check=True)
        assert done.stdout.split() == [b"old", b"0", b"1", b"2", b"3"]  # 3 is the directory that ls reads
        assert read(mount.fd, "a") == b"new\n"
    assert (lower / "a").read_text() == "old\n"


def test_second_mount_of_an_upper_is_refused(tmp_path: Path) -> None:
    path = f"{tmp_path}/layer"
    code = "import sys; from handrail.kernel.layers.upper import Upper; Upper.open(sys.argv[1])"
    with Upper.open(path):
        with pytest.raises(LayerBusy):
            Upper.open(path)
        other = subprocess.run([sys.executable, "-P", "-c", code, path], capture_output=True, check=False)
        assert b"LayerBusy" in other.stderr
    Upper.open(path).close()


def test_killed_process_leaves_no_mount_and_no_lock(tmp_path: Path, lower: Path, handle: int) -> None:
    path = f"{tmp_path}/layer"
    code = """if True:
        import os, sys
        from handrail.kernel.layers.upper import Upper
        mount = Upper.open(sys.argv[1]).mount([os.open(sys.argv[2], os.O_PATH)], sys.argv[2])
        os.close(os.open("kept", os.O_CREAT | os.O_WRONLY, dir_fd=mount.fd))
        print("mounted", flush=True)
        sys.stdin.read()
    """
    words = [sys.executable, "-P", "-c", code, path, str(lower)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"mounted\n"
        process.send_signal(signal.SIGKILL)
    with Upper.open(path) as upper, upper.mount([handle], str(lower)) as mount:
        assert sorted(os.listdir(mount.fd)) == ["a", "kept"]
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    clear(path)
    assert not os.path.lexists(path)


def test_clear_removes_directories_without_mode_bits_and_follows_no_link(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "layer"
    victim.mkdir()
    (victim / "file").write_text("x")
    deep = path / "work/work/inner"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    (path / "link").symlink_to(victim)
    for each in (deep, deep.parent):
        each.chmod(0)
    clear(str(path))
    assert not path.exists()
    assert (victim / "file").read_text() == "x"
    clear(str(path))  # a missing directory is no error


def test_clear_deep_tree_works(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    clear(f"{tmp_path}/d")
    assert os.listdir(tmp_path) == []


def test_layer_that_others_can_reach_or_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    with pytest.raises(PermissionError, match="other users"):
        Upper.open(f"{tmp_path}/open")
    with pytest.raises(OSError):  # noqa: PT011  its text depends on the system
        Upper.open(f"{tmp_path}/link")


@pytest.mark.root
def test_layer_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(0o700)
    os.chown(tmp_path / "theirs", 65534, 65534)
    with pytest.raises(PermissionError, match="another user"):
        Upper.open(f"{tmp_path}/theirs")


def test_layer_whose_name_leads_elsewhere_now_is_not_mounted(tmp_path: Path, lower: Path, handle: int) -> None:
    lower.rename(tmp_path / "aside")
    (tmp_path / "other").mkdir()
    held = os.open(tmp_path / "other", os.O_PATH)
    (tmp_path / "other").rename(tmp_path / "gone")
    (tmp_path / "other").mkdir()
    with Upper.open(f"{tmp_path}/layer") as upper, upper.mount([handle], f"{tmp_path}/aside") as mount:
        assert read(mount.fd, "a") == b"old\n"  # the name of the handle follows the directory
    os.rmdir(tmp_path / "gone")
    with Upper.open(f"{tmp_path}/layer") as upper, pytest.raises(OSError):  # noqa: PT011  its text depends on the system
        upper.mount([held], f"{tmp_path}/other")
    os.close(held)


def test_setuid_and_devices_have_no_effect_in_view(tmp_path: Path, lower: Path, handle: int) -> None:
    with Upper.open(f"{tmp_path}/layer") as upper, upper.mount([handle], str(lower)) as mount:
        flags = os.fstatvfs(mount.fd).f_flag
        assert flags & os.ST_NOSUID
        assert flags & os.ST_NODEV


def changes_layer(root: str) -> bool:
    own_proc_files()
    fd = os.open(root, os.O_PATH)
    with Upper.open(f"{root}/../state/layer") as upper, upper.mount([fd], root) as mount:
        write(mount.fd, "a", b"x")
        os.chmod("a", 0o600, dir_fd=mount.fd)
        return stat.S_IMODE(os.stat("a", dir_fd=mount.fd).st_mode) == 0o600 and os.listdir(root) == []


def test_mount_works_for_ordinary_user() -> None:
    assert as_ordinary_user(changes_layer)


def is_refused(root: str) -> tuple[str, str, str]:
    os.mkdir(f"{root}/place")
    deny_user_namespaces()
    fd = os.open(root, os.O_PATH)
    try:
        Mount.make([fd], None, None, root)
    except OverlayRefused as refused:
        refusal.cache_clear()
        return refused.step, refusal(), refusal_in(f"{root}/place")
    return "", "", ""


def test_mount_without_user_namespaces_says_why() -> None:
    step, whole, there = as_ordinary_user(is_refused)
    assert step in ("unshare", "map")
    assert "user namespaces" in whole
    assert "user namespaces" in there
