"""Tests packs, the cache of trees and copies: bit for bit, verified, and safe against hostile packs."""

import io
import os
import subprocess
import sys
import tarfile
from functools import partial
from pathlib import Path

import pytest
from support.layers import needs_overlays

from handrail.kernel.fleet.copied_tree import CopiedTree
from handrail.kernel.fleet.overlaid_tree import OverlaidTree, enter
from handrail.kernel.fleet.saved_state import forked
from handrail.kernel.fleet.tree_cache import TreeCache
from handrail.kernel.fleet.tree_pack import TreeError, content_id, pack, unpack


def state_of(root: Path) -> dict[str, tuple[int, bytes]]:
    found = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[os.fsdecode(os.fsencode(str(path.relative_to(root))))] = mode, content
    return found


def packed(root: Path, tmp_path: Path, name: str = "pack") -> tuple[str, str]:
    target = str(tmp_path / name)
    return content_id(pack(str(root), target)), target


def test_unpack_of_pack_is_equal_and_has_its_id(tree_root: Path, tmp_path: Path) -> None:
    tree, file = packed(tree_root, tmp_path)
    (tmp_path / "copy").mkdir()
    assert content_id(unpack(file, str(tmp_path / "copy"), expected=tree)) == tree
    assert state_of(tmp_path / "copy") == state_of(tree_root)


def test_content_id_changes_with_content_mode_name_and_target(tree_root: Path, tmp_path: Path) -> None:
    changes = ["echo other > a.txt", "chmod 600 a.txt", "mv a.txt b.txt", "ln -sfn a link", "rmdir empty"]
    ids = [packed(tree_root, tmp_path, "0")[0]]
    for number, command in enumerate(changes, 1):
        subprocess.run(["/bin/sh", "-ec", command], cwd=tree_root, check=True)
        ids.append(packed(tree_root, tmp_path, str(number))[0])
    assert len({*ids}) == len(changes) + 1


def test_content_id_is_equal_after_copy_with_other_times(tree_root: Path, tmp_path: Path) -> None:
    first, _ = packed(tree_root, tmp_path, "1")
    os.utime(tree_root / "a.txt", (1, 1))
    assert packed(tree_root, tmp_path, "2")[0] == first


def test_changed_pack_is_refused(tree_root: Path, tmp_path: Path) -> None:
    tree, _ = packed(tree_root, tmp_path)
    (tree_root / "a.txt").write_text("other")
    _, other = packed(tree_root, tmp_path, "other")
    (tmp_path / "copy").mkdir()
    with pytest.raises(TreeError, match="does not hold the tree"):
        unpack(other, str(tmp_path / "copy"), expected=tree)


@pytest.mark.parametrize("cut", [0, 3, 20, 200])
def test_torn_pack_is_refused(tree_root: Path, tmp_path: Path, cut: int) -> None:
    tree, file = packed(tree_root, tmp_path)
    Path(file).write_bytes(Path(file).read_bytes()[:cut])
    (tmp_path / "copy").mkdir()
    with pytest.raises(TreeError, match="damaged"):
        unpack(file, str(tmp_path / "copy"), expected=tree)


def hostile(*members: tuple[str, bytes, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, kind, target in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            info.size = 5 if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(b"owned") if info.size else None)
    return out.getvalue()


@pytest.mark.parametrize(
    "members",
    [
        [("../owned", tarfile.REGTYPE, "")],
        [("a/../../owned", tarfile.REGTYPE, "")],
        [("/{outside}/owned", tarfile.REGTYPE, "")],
        [("way", tarfile.SYMTYPE, "{outside}"), ("way/owned", tarfile.REGTYPE, "")],
        [("owned", tarfile.SYMTYPE, "{outside}/owned"), ("owned", tarfile.REGTYPE, "")],
        [("owned", tarfile.LNKTYPE, "{outside}/secret")],
        [("owned", tarfile.FIFOTYPE, "")],
        [("owned", tarfile.CHRTYPE, "")],
        [("", tarfile.REGTYPE, "")],
    ],
)
@pytest.mark.parametrize("over", [False, True])
def test_hostile_pack_writes_nothing_outside(tmp_path: Path, members: list[tuple[str, bytes, str]], over: bool) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "secret").write_text("secret")
    made = [(name.format(outside=outside), kind, target.format(outside=outside)) for name, kind, target in members]
    (tmp_path / "pack").write_bytes(hostile(*made))
    with pytest.raises((TreeError, OSError)):
        unpack(str(tmp_path / "pack"), str(inside), over=over)
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert not (tmp_path / "owned").exists()
    assert not (inside / "owned").is_file()


def test_cache_unpacks_tree_once(tree_root: Path, tmp_path: Path, node: str) -> None:
    tree, file = packed(tree_root, tmp_path)
    fetched: list[str] = []

    def fetch() -> str:
        fetched.append(file)
        return file

    first, second = TreeCache(node, 1 << 30), TreeCache(node, 1 << 30)
    assert first.use(tree, fetch) == second.use(tree, fetch)
    assert len(fetched) == 1
    assert state_of(Path(first.use(tree, fetch))) == state_of(tree_root)


def test_cache_with_wrong_pack_keeps_nothing(tree_root: Path, tmp_path: Path, node: str) -> None:
    _, file = packed(tree_root, tmp_path)
    cache = TreeCache(node, 1 << 30)
    with pytest.raises(TreeError):
        cache.use("0" * 64, lambda: file)
    assert not cache.has("0" * 64)
    assert not [each for each in os.listdir(f"{node}/trees") if each.endswith(".new")]


def test_cache_deletes_oldest_trees_but_none_in_use(tmp_path: Path, node: str) -> None:
    trees = []
    for number in range(4):
        root = tmp_path / f"tree{number}"
        root.mkdir()
        (root / "data").write_bytes(os.urandom(300_000))
        trees.append(packed(root, tmp_path, f"{number}.pack"))
    (first, first_pack), *middle, (last, last_pack) = trees
    holder, passing = TreeCache(node, 700_000), TreeCache(node, 700_000)
    holder.use(first, lambda: first_pack)
    for tree, file in middle:
        passing.use(tree, partial(str, file))
        passing.close()
    passing.use(last, lambda: last_pack)
    assert [holder.has(tree) for tree, _ in trees] == [True, False, False, True]


CHANGES = {
    "opaque directory": "rm -r src; mkdir src; echo x > src/other",
    "emptied directory": "rm -r src/*",
    "moved out and in": "mv src/run.sh run; mv src/deep away; mkdir -p src/deep/deeper; echo y > src/deep/deeper/y",
    "nothing": ":",
    "edit": "echo new > a.txt",
    "edit of equal size": "printf 'TWO\\none\\n' > new; touch -r a.txt new; cat new > a.txt; rm new",
    "new": "mkdir new; echo x > new/file",
    "delete": "rm a.txt link",
    "delete a directory": "rm -r src",
    "mode": "chmod 700 src; chmod 600 a.txt",
    "file to directory": "rm a.txt; mkdir a.txt; echo x > a.txt/b",
    "directory to link": "rmdir empty; ln -s /etc empty",
    "directory with files to link": "rm -r src; ln -s /etc src",
    "link to directory": "rm link; mkdir link; echo x > link/x",
    "rename": "mv src source",
}


def change(name: str, root: Path) -> None:
    subprocess.run(["/bin/sh", "-ec", CHANGES[name]], cwd=root, check=True)


@pytest.mark.parametrize("name", CHANGES)
def test_saved_state_restored_elsewhere_is_equal(name: str, tree_root: Path, tmp_path: Path) -> None:
    first = CopiedTree("t", str(tree_root), str(tmp_path / "first"))
    change(name, tmp_path / "first")
    saved = first.save(str(tmp_path / "saved"))
    second = CopiedTree("t", str(tree_root), str(tmp_path / "second"))
    second.restore(saved)
    assert state_of(tmp_path / "second") == state_of(tmp_path / "first")
    (tmp_path / "second" / "more").write_text("more")
    third = CopiedTree("t", str(tree_root), str(tmp_path / "third"))
    third.restore(second.save(str(tmp_path / "again")))
    assert state_of(tmp_path / "third") == state_of(tmp_path / "second")


def overlaid(tree_root: Path, place: Path) -> None:
    """Make every change in an overlay; save, restore and fork it; runs in a process of its own."""
    (place / "trial").mkdir()
    assert enter(str(place / "trial")) == ""
    for number, name in enumerate(CHANGES):
        here = place / str(number)
        here.mkdir()
        first = OverlaidTree("t", str(tree_root), str(here / "first"))
        change(name, here / "first")
        saved = first.save(str(here / "saved"))
        second = first.fresh(str(here / "second"))
        second.restore(saved)
        assert state_of(here / "second") == state_of(here / "first"), name
        (here / "second" / "more").write_text("more")
        third = forked(second, str(here / "third"), str(here / "forked"))
        assert state_of(here / "third") == state_of(here / "second"), name
        copied = CopiedTree("t", str(tree_root), str(here / "copied"))
        copied.restore(saved)  # a node without overlays
        assert state_of(here / "copied") == state_of(here / "first"), name
        back = first.fresh(str(here / "back"))
        back.restore(copied.save(str(here / "again")))
        assert state_of(here / "back") == state_of(here / "first"), name
        for each in (first, second, third, copied, back):
            each.close()
        assert sorted(path.name.split(".")[0] for path in here.iterdir()) == ["again", "again", "saved", "saved"], name
    print("all")


@needs_overlays
def test_saved_state_of_overlay_restored_and_forked_is_equal(tree_root: Path, tmp_path: Path) -> None:
    """Each way is compared with the others: overlay to overlay, to a copy, and back."""
    before = state_of(tree_root)
    code = "import sys, pathlib, fleet.test_trees as t; t.overlaid(*map(pathlib.Path, sys.argv[1:]))"
    (tmp_path / "o").mkdir()
    argv = [sys.executable, "-c", code, str(tree_root), str(tmp_path / "o")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "all\n", done.stderr
    assert state_of(tree_root) == before


def test_saved_state_holds_only_what_differs(tree_root: Path, tmp_path: Path) -> None:
    (tree_root / "large").write_bytes(os.urandom(1_000_000))
    copy = CopiedTree("t", str(tree_root), str(tmp_path / "copy"))
    (tmp_path / "copy" / "a.txt").write_text("new")
    assert os.path.getsize(copy.save(str(tmp_path / "saved")).pack) < 10_000


def test_restore_through_link_of_tree_stays_inside(tree_root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tree_root / "way").symlink_to(outside)
    first = CopiedTree("t", str(tree_root), str(tmp_path / "first"))
    (tmp_path / "first" / "way").unlink()
    (tmp_path / "first" / "way").mkdir()
    (tmp_path / "first" / "way" / "file").write_text("x")
    second = CopiedTree("t", str(tree_root), str(tmp_path / "second"))
    second.restore(first.save(str(tmp_path / "saved")))
    assert not [*outside.iterdir()]
    assert (tmp_path / "second" / "way" / "file").read_text() == "x"
