"""Tests that undo and redo work between any two trees. `HANDRAIL_LONG` sets the number of examples."""

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tree import snapshot

from handrail import Workspace

LONG = int(os.environ.get("HANDRAIL_LONG", "0"))
NAMES = st.sampled_from(["a", "b", "c"])
NODES = st.recursive(
    st.sampled_from(["one\n", "two\n", "->a", "->b/c"]),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def made(tree: dict[str, Any], stem: str = "") -> str:
    """Return commands that build a tree: texts are files, `->` begins a link."""
    said = ""
    for name, node in tree.items():
        if isinstance(node, dict):
            said += f"mkdir {stem}{name}\n{made(node, f'{stem}{name}/')}"
        else:
            said += (
                f"ln -s {node[2:]} {stem}{name}\n" if node.startswith("->") else f"echo {node.strip()} > {stem}{name}\n"
            )
    return said


@settings(max_examples=LONG or 25, derandomize=not LONG, deadline=None, database=None)
@given(trees=st.lists(st.dictionaries(NAMES, NODES, max_size=3), min_size=3, max_size=3))
def test_undo_any_tree_change_is_undone_and_redone(
    tmp_path_factory: pytest.TempPathFactory, trees: list[dict[str, Any]]
) -> None:
    root = tmp_path_factory.mktemp("any")
    with Workspace(str(root), approve="auto", sandbox="off", durability="none", log_level="off") as workspace:
        seen = [snapshot(root)]
        for tree in trees:
            assert workspace.call("codex", "shell", {"command": f"rm -rf ./*\n{made(tree)}"}).success
            seen.append(snapshot(root))
        entries = workspace._services.journal.last_number()
        for _ in range(2):
            for number in range(entries):
                assert workspace.history().undo().done, number
            assert snapshot(root) == seen[0]
            for _ in range(entries):
                assert workspace.history().redo().done
            assert snapshot(root) == seen[-1]
        if entries:
            assert workspace.history().undo(since=1).done
            assert snapshot(root) == seen[0]
