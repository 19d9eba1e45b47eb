"""Attacks layers: from commands and tools inside, from another user or process, and by a hostile snapshot."""

import io
import json
import os
import resource
import stat
import tarfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.layers import needs_overlays, own_proc_files
from support.ordinary_user import as_ordinary_user

from handrail import CallError, Snapshot, Workspace, WorkspaceError
from handrail.kernel.journal.layer_scan import LayerScan
from handrail.kernel.layers.layer_store import LayerStore
from handrail.model.limits import Limits

pytestmark = [needs_overlays, pytest.mark.sandbox]


def opened(root: Path, layered: bool | str = True, **settings: Any) -> Workspace:
    return Workspace(root, **({"approve": "auto", "layered": layered} | settings))


def sh(workspace: Workspace, text: str) -> str:
    ran = workspace.exec(["sh", "-c", text])
    return (ran.stdout + ran.stderr).decode()


def test_second_workspace_on_same_layer_is_refused(root: Path) -> None:
    with opened(root), pytest.raises(WorkspaceError, match="open already"):
        opened(root)


def test_overlay_attributes_set_inside_hide_and_reveal_nothing(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub/file").write_text("below\n")
    code = (
        "import os\nos.mkdir('own')\n"
        "for name in ['user.overlay.' + each for each in ('opaque', 'redirect', 'whiteout', 'metacopy')]:\n"
        "    for place in ('sub', 'own', 'own/f'):\n"
        "        try:\n"
        "            open('own/f', 'w').close()\n"
        "            os.setxattr(place, name, b'y' if 'opaque' in name else b'/../../etc')\n"
        "        except OSError as error:\n"
        "            print(error)\n"
    )
    with opened(root) as workspace:
        workspace.write_bytes("attack.py", code.encode())
        sh(workspace, "python3 attack.py")
        for _ in range(2):  # in this mount, and in the next one, where the marks would count
            assert sh(workspace, "ls sub own; cat sub/file").split() == ["own:", "f", "sub:", "file", "below"]
            fork = workspace.fork()[0]
            assert sh(fork, "cat sub/file") == "below\n"
            assert fork.read_bytes("own/f") == b""
            fork.close()


def test_command_cannot_make_a_whiteout_or_reach_the_store(root: Path) -> None:
    (root / "file").write_text("x")
    with opened(root) as workspace:
        store = workspace._services.layer.store.path  # type: ignore[union-attr]
        assert "Operation not permitted" in sh(workspace, "mknod w c 0 0")
        for place in (store, f"/proc/1/root{store}"):  # commands may read whole outputs there, and nothing else
            assert "upper" not in sh(workspace, f"find '{place}'")
        assert sh(workspace, "ls /proc/self/fd").split() == ["0", "1", "2", "3"]  # 3 is the directory that ls reads


def test_setuid_through_tools_and_commands_is_not_kept(root: Path, tmp_path: Path) -> None:
    (tmp_path / "tool").write_bytes(b"x")
    (tmp_path / "tool").chmod(0o6755)
    with opened(root) as workspace:
        workspace.upload(tmp_path / "tool", "uploaded")
        sh(workspace, "echo >made; chmod 6755 made")
        view = workspace._services.boundary.fd
        assert os.stat("uploaded", dir_fd=view).st_mode & 0o6000 == 0
        assert os.fstatvfs(view).f_flag & os.ST_NOSUID
        snapshot = workspace.snapshot()
        workspace.apply()
    assert (root / "uploaded").stat().st_mode & 0o6000 == 0
    assert (root / "made").stat().st_mode & 0o6000 == 0
    for other in (root / "made", root / "uploaded"):
        other.unlink()
    with Workspace.open(snapshot, root, approve="auto") as workspace:
        assert os.stat("made", dir_fd=workspace._services.boundary.fd).st_mode & 0o6000 == 0


def test_store_that_others_can_reach_is_refused(root: Path) -> None:
    store = LayerStore(os.path.realpath(root))
    os.chmod(store.path, 0o777)
    with pytest.raises(WorkspaceError, match="other users"):
        opened(root)
    os.chmod(store.path, 0o700)
    os.makedirs(store.place("default"), mode=0o700)
    os.chmod(store.place("default"), 0o770)
    with opened(root):  # what another user could have filled is thrown away
        assert stat.S_IMODE(os.stat(store.place("default")).st_mode) == 0o700


@pytest.mark.root
def test_store_of_another_user_is_refused(root: Path) -> None:
    os.chown(LayerStore(os.path.realpath(root)).path, 65534, 65534)
    with pytest.raises(WorkspaceError, match="another user"):
        opened(root)


def test_links_in_store_are_not_followed(root: Path, tmp_path: Path) -> None:
    store = LayerStore(os.path.realpath(root))
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim/file").write_text("precious")
    (tmp_path / "victim/layer.json").write_text("{}")
    os.symlink(tmp_path / "victim", store.place("default"))
    with pytest.raises(WorkspaceError):
        opened(root)
    os.unlink(store.place("default"))
    with opened(root, "other") as workspace:
        os.symlink(tmp_path / "victim", f"{store.path}/frozen/planted")
        work = f"{workspace._services.layer.path}/work/work"  # type: ignore[union-attr]
        os.chmod(work, 0o700)
        os.symlink(tmp_path / "victim", f"{work}/planted")
    assert sorted(os.listdir(tmp_path / "victim")) == ["file", "layer.json"]


def test_links_exchanged_during_apply_and_changes_never_lead_outside(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("secret\n")
    (root / "sub").mkdir()
    (root / "sub/file").write_text("old\n")
    with opened(root) as workspace:
        view, stop = workspace._services.boundary.fd, threading.Event()
        sh(workspace, f"echo new >sub/file; ln -s '{outside}' link")

        def swap() -> None:
            while not stop.is_set():
                os.rename("sub", "aside", src_dir_fd=view, dst_dir_fd=view)
                os.symlink(outside, "sub", dir_fd=view)
                os.unlink("sub", dir_fd=view)
                os.rename("aside", "sub", src_dir_fd=view, dst_dir_fd=view)

        sh(workspace, "mv sub moved; mkdir sub; mv moved/* sub")  # a directory of the layer alone can be renamed
        swapper = threading.Thread(target=swap)
        swapper.start()
        try:
            for _ in range(30):
                shown = "".join(change.diff for change in _ignoring_errors(workspace.changes) or [])
                assert "secret" not in shown
        finally:
            stop.set()
            swapper.join()
    assert (outside / "file").read_text() == "secret\n"
    assert os.listdir(outside) == ["file"]


def _ignoring_errors(act: Callable[[], Any]) -> Any:
    from handrail import HandrailError

    try:
        return act()
    except HandrailError:
        return None


HEAD = {"version": 1, "root": "/", "content": ""}


def hostile(*entries: tarfile.TarInfo, head: dict[str, Any] | None = None, data: bytes = b"evil") -> Snapshot:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        text = json.dumps(HEAD | (head or {})).encode()
        first = tarfile.TarInfo("snapshot.json")
        first.size = len(text)
        archive.addfile(first, io.BytesIO(text))
        for each in entries:
            archive.addfile(each, io.BytesIO(data) if each.isreg() else None)
        archive.addfile(tarfile.TarInfo("end"))
    return Snapshot.of(made.getvalue())


def sparse(size: int) -> tarfile.TarInfo:
    """Return a file that has hardly any bytes in the archive, and many when it is unpacked."""
    info = entry("upper/s")
    info.pax_headers = {"GNU.sparse.size": str(size), "GNU.sparse.map": "0,4"}
    return info


def entry(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", device: tuple[int, int] = (0, 0)
) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, 0o6777
    info.devmajor, info.devminor = device
    info.size = 4 if kind == tarfile.REGTYPE else 0
    return info


HOSTILE = {
    "parent": [entry("upper/../../../escaped")],
    "absolute": [entry("/escaped")],
    "outside its parts": [entry("escaped")],
    "other state": [entry("state/layer.json")],
    "state above": [entry("state/../escaped")],
    "through a link": [entry("upper/l", tarfile.SYMTYPE, "/tmp"), entry("upper/l/escaped")],
    "over a link": [entry("upper/l", tarfile.SYMTYPE, "/tmp/escaped"), entry("upper/l")],
    "twice": [entry("upper/a"), entry("upper/a")],
    "hard link": [entry("upper/h", tarfile.LNKTYPE, "/etc/passwd")],
    "device": [entry("upper/d", tarfile.CHRTYPE, device=(1, 3))],
    "block device": [entry("upper/d", tarfile.BLKTYPE, device=(8, 0))],
    "pipe": [entry("upper/p", tarfile.FIFOTYPE)],
    "long name": [entry("upper/" + "n" * 300)],
    "no parent": [entry("upper/missing/file")],
    "link in state": [entry("state/memories", tarfile.SYMTYPE, "/tmp")],
    "sparse": [sparse(1 << 31)],
    "odd state": [entry("state/journal.jsonl/x")],
}


@pytest.mark.parametrize("entries", HOSTILE.values(), ids=HOSTILE)
def test_hostile_snapshot_is_refused_and_writes_nothing_outside(root: Path, entries: list[tarfile.TarInfo]) -> None:
    content = _content(root)
    with pytest.raises(WorkspaceError):
        Workspace.open(hostile(*entries, head={"content": content}), root)
    assert not os.path.lexists("/escaped")
    assert not os.path.lexists("/tmp/escaped")
    store = LayerStore(os.path.realpath(root))
    store.sweep()
    assert os.listdir(f"{store.path}/named") == []
    assert os.listdir(root) == []


def test_snapshot_that_is_garbage_or_cut_short_is_refused(root: Path) -> None:
    whole = bytes(hostile(entry("upper/a"), head={"content": _content(root)}))
    versions = bytes(hostile(head={"version": 99}))
    for data in (b"", b"garbage" * 1000, whole[:1500], versions, bytes(hostile(head={"content": 3, "root": None}))):
        with pytest.raises(WorkspaceError):
            Workspace.open(Snapshot.of(data), root)


def test_snapshot_with_header_of_gigabyte_is_refused_unread(root: Path, tmp_path: Path) -> None:
    whole = bytes(hostile(head={"content": _content(root)}))
    header = tarfile.TarInfo("upper/a")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    with open(tmp_path / "bomb", "wb") as file:
        file.write(whole[:1024] + header.tobuf(tarfile.USTAR_FORMAT))
        file.truncate(1 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(WorkspaceError, match="header"):
        Workspace.open(Snapshot.load(tmp_path / "bomb"), root)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # in KiB


def test_setuid_in_hostile_snapshot_is_dropped(root: Path) -> None:
    snapshot = hostile(entry("upper/a"), head={"content": _content(root)})
    with Workspace.open(snapshot, root, approve="auto") as workspace:
        found = os.stat("a", dir_fd=workspace._services.boundary.fd)
        assert stat.S_IMODE(found.st_mode) == 0o777
        assert workspace.read_bytes("a") == b"evil"


def _content(root: Path) -> str:
    from handrail.kernel.layers.content_id import content_id

    fd = os.open(root, os.O_RDONLY)
    try:
        return content_id(fd, f"{root.parent}/known.json")
    finally:
        os.close(fd)


NEST = "import os\nfor _ in range({}):\n    os.mkdir('d')\n    os.chdir('d')\n"


def test_directories_nested_by_command_use_few_handles(root: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with opened(root) as workspace:
        workspace.write_bytes("nest.py", NEST.format(700).encode())
        sh(workspace, "python3 nest.py")
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, limits[1]))
        try:
            assert not any("too many open files" in each.lower() for each in workspace.exec(["true"]).warnings)
            assert len(workspace.changes()) == 701
            with workspace.fork()[0] as fork:
                assert fork.snapshot().size > 700 * 512
            workspace.discard()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert workspace.changes() == []


def test_path_longer_than_system_takes_is_named_and_layer_stays_usable(root: Path) -> None:
    with opened(root, limits={"layer_depth": 1}) as workspace:
        workspace.write_bytes("nest.py", NEST.format(3000).encode())
        sh(workspace, "python3 nest.py")
        with pytest.raises(CallError, match="too long"):
            workspace.changes()
        for number in range(3):  # layers that cannot become one stay several
            sh(workspace, f"echo {number} >n")
            with workspace.fork()[0] as fork:
                assert sh(fork, "cat n") == f"{number}\n"
        workspace.discard()
        assert workspace.changes() == []


def test_files_that_come_and_go_stop_neither_journal_nor_changes(root: Path) -> None:
    with opened(root) as workspace:
        view, stop = workspace._services.boundary.fd, threading.Event()

        def churn() -> None:
            while not stop.is_set():
                os.mkdir("q", dir_fd=view)
                os.close(os.open("q/file", os.O_CREAT | os.O_WRONLY, dir_fd=view))
                os.unlink("q/file", dir_fd=view)
                os.rmdir("q", dir_fd=view)

        churning = threading.Thread(target=churn)
        churning.start()
        try:
            for number in range(20):
                ran = workspace.exec(["sh", "-c", f"echo >made{number}"])
                assert not any("not recorded and cannot" in each for each in ran.warnings), ran.warnings
                workspace.changes()
        finally:
            stop.set()
            churning.join()
        assert {f"made{number}" for number in range(20)} <= {each.path for each in workspace.changes()}


def scans_beside_unreadable(root: str) -> list[str]:
    """Look for changes beside directories that this user has made unreadable."""
    own_proc_files()
    with Workspace(root, approve="auto", layered=True, sandbox="off") as workspace:
        layer, view = workspace._services.layer, workspace._services.boundary.fd
        assert layer is not None
        os.mkdir("closed", 0o000, dir_fd=view)
        os.mkdir("half", 0o400, dir_fd=view)
        workspace.write_bytes("made", b"x")
        found = [*LayerScan(layer, view, Limits()).changed()]
        with pytest.raises(CallError, match="closed"):
            workspace.snapshot()
        workspace.discard()
        return [*found, *os.listdir(view)]


def test_unreadable_directory_in_layer_of_ordinary_user_is_no_way_around_journal() -> None:
    assert sorted(as_ordinary_user(scans_beside_unreadable)) == ["closed", "half", "made"]


def attacks_that_succeed(root: str) -> list[str]:
    """Make the attacks that need no command, each in a workspace of its own; return what is wrong."""
    own_proc_files()
    attacks: list[Callable[[Path], object]] = [
        test_second_workspace_on_same_layer_is_refused,
        test_store_that_others_can_reach_is_refused,
        test_snapshot_that_is_garbage_or_cut_short_is_refused,
        *(
            lambda root, of=of: test_hostile_snapshot_is_refused_and_writes_nothing_outside(root, of)
            for of in HOSTILE.values()
        ),
    ]
    wrong = []
    for number, attack in enumerate(attacks):
        place = Path(root, str(number), "root")
        place.mkdir(parents=True)
        try:
            attack(place)
        except BaseException:
            wrong.append(traceback.format_exc()[-1000:])
    return wrong


def test_attacks_on_layers_of_ordinary_user_fail_as_well() -> None:
    assert as_ordinary_user(attacks_that_succeed) == []
