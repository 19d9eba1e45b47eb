"""Exchanges directories and files with links that lead outside, thousands of times, while the tools run."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from attacks.swapper import Swapper, swapping
from support.trap_arena import SECRET
from support.tree import snapshot
from support.writer import commit

from handrail import Workspace
from handrail.kernel.fs import resolver
from handrail.model.faults import Conflict, OutsideRoot
from handrail.model.files import MakeDirectory

LONG = bool(os.environ.get("HANDRAIL_LONG"))
SWAPS, CALLS = (2_000_000, 20_000) if LONG else (40_000, 400)
LOOKING = {"ok", "path_outside_workspace"}
CHANGING = LOOKING | {"conflict"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root, outside = tmp_path / "workspace", tmp_path / "outside"
    for directory in (root / "place", outside):
        directory.mkdir(parents=True)
    (root / "place" / "file.txt").write_text("inside\n")
    (root / "file.txt").write_text("inside\n")
    (root / "trap").symlink_to("../outside")
    (root / "trap.txt").symlink_to("../outside/file.txt")
    (root / "trap_abs").symlink_to(outside)
    for name in ("file.txt", "only-outside.txt"):
        (outside / name).write_text(SECRET)
    return root


@pytest.fixture(params=["openat2", "walk"])
def workspace(request: pytest.FixtureRequest, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setattr(resolver.Openat2, "works", staticmethod(lambda _: request.param == "openat2"))
    with Workspace(str(root), approve="auto", durability="none") as opened:
        assert opened._services.boundary.resolver == request.param
        yield opened


@contextmanager
def under_attack(root: Path) -> Iterator[Swapper]:
    beyond = snapshot(root.parent / "outside", precise=True)
    with swapping(str(root), ("place", "trap"), ("file.txt", "trap.txt"), ("place", "trap_abs")) as swapper:
        yield swapper
    assert snapshot(root.parent / "outside", precise=True) == beyond
    assert not [name for name in snapshot(root) if ".handrail-" in name]


def keep_calling(swapper: Swapper, act: Callable[[int], None]) -> None:
    """Repeat until SWAPS exchanges and CALLS calls are done; no clock decides."""
    for number in itertools.count():
        act(number)
        if swapper.swaps >= SWAPS and number >= CALLS:
            return


TOOLS: dict[str, Callable[[int], dict[str, Any]]] = {
    "file.read": lambda n: {"path": ("place/file.txt", "file.txt")[n % 2]},
    "file.list": lambda n: {"path": ("place", ".")[n % 2]},
    "file.write": lambda n: {"path": ("place/file.txt", "file.txt", f"place/new-{n}/x")[n % 3], "content": f"{n} mine"},
    "file.patch": lambda n: {
        "path": ("place/file.txt", "file.txt")[n % 2],
        "patches": [{"find": "inside", "replace": "inside"}],
    },
}


# A write that happens while the directory has the other name is recorded and reported under that name. The session
# then considers the file stale under its usual name.
EXPECTED = {
    "file.read": LOOKING,
    "file.list": LOOKING,
    "file.write": CHANGING | {"stale_file"},
    "file.patch": CHANGING,
}


@pytest.mark.parametrize("tool", TOOLS)
def test_calls_stay_inside_while_names_are_exchanged(workspace: Workspace, root: Path, tool: str) -> None:
    seen: set[str] = set()

    def act(number: int) -> None:
        result = workspace.call("file", tool, TOOLS[tool](number))
        assert SECRET not in str(result.output)
        assert "only-outside" not in str(result.output)
        seen.add(result.error.code if result.error else "ok")

    with under_attack(root) as swapper:
        keep_calling(swapper, act)
    assert "ok" in seen
    assert seen <= EXPECTED[tool]


def test_delete_stays_inside_while_names_are_exchanged(workspace: Workspace, root: Path) -> None:
    seen: set[str] = set()

    def act(number: int) -> None:
        path = f"place/only-{number}.txt"
        workspace.call("file", "file.write", {"path": path, "content": "x"})
        for name in (path, "place/only-outside.txt"):
            result = workspace.call("file", "file.delete", {"path": name})
            seen.add(result.error.code if result.error else "ok")

    with under_attack(root) as swapper:
        keep_calling(swapper, act)
    assert "ok" in seen
    assert seen <= CHANGING | {"file_not_found"}


def test_new_directory_stays_inside_while_names_are_exchanged(workspace: Workspace, root: Path) -> None:
    writer, made = workspace._services.writer, 0

    def act(number: int) -> None:
        nonlocal made
        changes: list[Any] = [MakeDirectory(f"place/dir-{number}/deeper")]
        try:
            commit(writer, changes)
            made += 1
        except (OutsideRoot, Conflict):
            pass

    with under_attack(root) as swapper:
        keep_calling(swapper, act)
    assert made


def test_move_stays_inside_while_names_are_exchanged(workspace: Workspace, root: Path) -> None:
    """Out of the exchanged directory and into it, which must bring nothing in and nothing out."""
    seen: set[str] = set()

    def act(number: int) -> None:
        here, there = f"file-{number}.txt", f"place/file-{number}.txt"
        workspace.call("file", "file.write", {"path": here, "content": "mine\n"})
        for old, new in ((here, there), (there, f"{here}.back"), ("place/only-outside.txt", "stolen.txt")):
            patch = f"*** Begin Patch\n*** Update File: {old}\n*** Move to: {new}\n*** End Patch\n"
            result = workspace.call("codex", "apply_patch_freeform", {"patch": patch})
            assert SECRET not in str(result.output)
            seen.add(result.error.code if result.error else "ok")

    with under_attack(root) as swapper:
        keep_calling(swapper, act)
    assert "ok" in seen
    assert seen <= CHANGING | {"file_not_found", "stale_file"}
    assert not (root / "stolen.txt").exists()


def test_realpath_check_before_open_loses_race(root: Path) -> None:
    """The race is real: the usual check, under the same swapper, gives the secret away."""

    def naive_read() -> str:
        path = str(root / "place" / "file.txt")
        with suppress(OSError):  # even realpath fails during an exchange
            if os.path.realpath(path).startswith(f"{root}/"):
                with open(path) as file:
                    return file.read()
        return ""

    with swapping(str(root), ("place", "trap")):
        while SECRET not in naive_read():
            pass


def test_temporary_file_replaced_by_link_is_not_hard_linked(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refuse the write: a hard link to the target of the planted link would make the target readable."""
    real_link = os.link

    def plant_then_link(source: str, target: str, **options: Any) -> None:
        handle = options["src_dir_fd"]
        os.unlink(source, dir_fd=handle)
        os.symlink(root.parent / "outside" / "file.txt", source, dir_fd=handle)
        real_link(source, target, **options)

    monkeypatch.setattr(os, "link", plant_then_link)
    workspace.call("file", "file.write", {"path": "new.txt", "content": "mine"})
    assert (root.parent / "outside" / "file.txt").stat().st_nlink == 1
    assert workspace.call("file", "file.read", {"path": "new.txt"}).success is False


def test_directory_moved_out_during_write_is_not_trusted_by_name(tmp_path: Path) -> None:
    """The system then refuses to go on, and the name alone would say nothing about where a link in its place leads."""
    root, outside, deep = tmp_path / "workspace", tmp_path / "outside", "/".join("a" * 40)
    for directory in (root / "d" / deep, root / ".git" / "hooks" / deep, outside):
        directory.mkdir(parents=True)
    (outside / "link").symlink_to(".git/hooks")
    with (
        Workspace(str(root), approve="auto", durability="none", journal="off") as workspace,
        swapping(str(root), ("d", "../outside/link")) as swapper,
    ):
        for number in itertools.count():
            workspace.call("file", "file.write", {"path": f"d/{deep}/f{number}", "content": "#!/bin/sh\n"})
            if swapper.swaps >= SWAPS and number >= 4 * CALLS:
                break
    assert not list((root / ".git" / "hooks" / deep).iterdir())
