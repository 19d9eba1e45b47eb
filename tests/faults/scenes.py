"""Defines the operations that the tests let fail, on a tree that is small enough to be built thousands of times."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from support.tree import Tree, snapshot
from support.writer import commit

from handrail import ToolResult, Workspace
from handrail.model.faults import Fault
from handrail.model.files import Change, MakeDirectory, Node, Put, Remove, Restore

OLD = {
    "keep.txt": b"keep\n",
    "replace.txt": b"old\n" * 9,
    "sub/replace.txt": b"old too\n",
    "sub/remove.txt": b"going\n",
}


def build(root: str) -> Tree:
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(f"{root}/sub")
    for name, data in OLD.items():
        with open(f"{root}/{name}", "wb") as file:
            file.write(data)
    os.chmod(f"{root}/replace.txt", 0o750)
    os.setxattr(f"{root}/replace.txt", "user.colour", b"blue")
    return snapshot(root)


def _tool(tool: str, **params: str) -> Callable[[Workspace], bool]:
    def act(workspace: Workspace) -> bool:
        result: ToolResult = workspace.call("file", tool, params)
        assert result.error is None or result.error.code != "internal_error"
        return result.success

    return act


def _four_files(workspace: Workspace) -> bool:
    """Also directories that are not there yet, two files sharing them."""
    reader, writer = workspace._services.reader, workspace._services.writer
    try:
        changes: list[Change] = [
            Put("replace.txt", b"new\n" * 7, reader.read("replace.txt")),
            Put("fresh/deep/one.txt", b"one\n"),
            Remove("sub/remove.txt", reader.read("sub/remove.txt")),
            Put("fresh/two.txt", b"two\n", mode=0o755),
            Put("sub/replace.txt", b"new too\n", reader.read("sub/replace.txt")),
            MakeDirectory("fresh/empty"),
        ]
        commit(writer, changes)
    except Fault:
        return False
    return True


def _turned(workspace: Workspace) -> bool:
    """A directory becomes a file, a file a directory, and another file goes along."""
    reader, writer = workspace._services.reader, workspace._services.writer
    try:
        sub, file = reader.node("sub"), reader.node("replace.txt")
        assert sub is not None
        inside = tuple((name, node) for name in sorted(reader.names("sub")) if (node := reader.node(f"sub/{name}")))
        deep = Node("directory", b"", 0o755, inside=(("link", Node("link", b"one", 0)),))
        tree = Node("directory", b"", 0o750, inside=(("deep", deep), ("one", Node("file", b"one\n" * 9, 0o640))))
        changes: list[Change] = [
            Restore("sub", sub._replace(inside=inside), Node("file", b"now a file\n", 0o600)),
            Restore("replace.txt", file, tree),
            Put("fresh.txt", b"fresh\n"),
        ]
        commit(writer, changes)
    except Fault:
        return False
    return True


SCENES: dict[str, Callable[[Workspace], bool]] = {
    "create": _tool("file.write", path="new.txt", content="new\n"),
    "create in new directories": _tool("file.write", path="fresh/deep/new.txt", content="new\n"),
    "replace": _tool("file.write", path="replace.txt", content="new\n" * 7),
    "delete": _tool("file.delete", path="sub/remove.txt"),
    "four files": _four_files,
    "directories come and go": _turned,
}


@dataclass
class Stage:
    """Plays one scene again and again in the same root."""

    root: str
    act: Callable[[Workspace], bool]
    old: Tree
    new: Tree
    missing: tuple[str, ...] = ()
    """System calls that the file system does not support."""
    entries: int = 0
    """Number of journal entries before the scene."""

    @classmethod
    def of(cls, scene: str, root: str, missing: tuple[str, ...] = ()) -> "Stage":
        old = build(root)
        with open_workspace(root) as workspace:
            assert SCENES[scene](workspace)
        new = snapshot(root)
        assert new != old
        return cls(root, SCENES[scene], old, new, missing)

    def reset(self) -> None:
        build(self.root)

    def tree(self) -> str:
        """Return "old", "new" or a description of what is wrong."""
        now = snapshot(self.root)
        return "old" if now == self.old else "new" if now == self.new else f"neither: {sorted(now)}"


def open_workspace(root: str) -> Workspace:
    return Workspace(root, approve="auto", log_level="off")


def left_over(workspace: Workspace) -> list[str]:
    """What our own records still hold; a workspace that is closed in peace leaves none."""
    return os.listdir(workspace._services.state.pending)
