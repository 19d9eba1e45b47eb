"""Tests that random patches apply whole or not at all, never outside. `HANDRAIL_LONG` sets their number."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tree import Tree, snapshot

from handrail import Workspace

NAMES = [
    "a.txt",
    "d/b.txt",
    "d",
    "new/x",
    "../out.txt",
    "link",
    "/etc/x",
    "link-out/x",
    '"\\056\\056/out.txt"',
    "a.txt/x",
]
SECTIONS = st.one_of(
    st.builds("*** Add File: {}\n+{}".format, st.sampled_from(NAMES), st.sampled_from(["x", "one", ""])),
    st.builds("*** Delete File: {}".format, st.sampled_from(NAMES)),
    st.builds("*** Update File: {}\n@@\n-one\n+{}".format, st.sampled_from(NAMES), st.sampled_from(["x", "one"])),
    st.builds("*** Update File: {}\n*** Move to: {}".format, st.sampled_from(NAMES), st.sampled_from(NAMES)),
)


def unified_section(old: str, new: str, hunk: str, head: str) -> str:
    """Build a section of a diff, complete or not, whose headers may contradict each other."""
    names = {"old": old.strip('"'), "new": new.strip('"')}
    return (head + "--- {old}\n+++ {new}\n" + hunk).format(**names)


HEADS = [
    "",
    "diff --git a/{old} b/{new}\n",
    "diff --git a/{old} b/{new}\nnew file mode 100755\n",
    "diff --git a/{old} b/{new}\ndeleted file mode 100644\n",
    "diff --git a/{old} b/{new}\nold mode 100644\nnew mode 100755\n",
    "diff --git a/{old} b/{new}\nsimilarity index 90%\nrename from {old}\nrename to {new}\n",
    "diff --git a/{old} b/{new}\nsimilarity index 90%\ncopy from {old}\ncopy to {new}\n",
    "Index: {new}\n",
    "prose\n",
]
HUNKS = [
    "@@ -1 +1 @@\n-one\n+x\n",
    "@@ -0,0 +1 @@\n+x\n",
    "@@ -1 +0,0 @@\n-one\n",
    "@@ -1,9 +1 @@\n one\n+x\n\\ No newline at end of file\n",
    "@@ -9,0 +9 @@\n+x\n",
    "@@ @@\n",
    "",
]
SIDES = st.sampled_from(["/dev/null", *NAMES, *(f"a/{name}" for name in NAMES), *(f"b/{name}" for name in NAMES)])
UNIFIED = st.builds(unified_section, SIDES, SIDES, st.sampled_from(HUNKS), st.sampled_from(HEADS))
LONG = int(os.environ.get("HANDRAIL_LONG", "0"))
bounded = settings(max_examples=LONG or 60, derandomize=not LONG, deadline=None, database=None)


@bounded
@given(sections=st.lists(SECTIONS, min_size=1, max_size=5))
def test_patch_any_envelope_is_applied_whole_or_not_at_all(
    tmp_path_factory: pytest.TempPathFactory, sections: list[str]
) -> None:
    assert_applied_or_untouched(
        tmp_path_factory.mktemp("any"), "\n".join(["*** Begin Patch", *sections, "*** End Patch", ""])
    )


@bounded
@given(sections=st.lists(UNIFIED, min_size=1, max_size=4), cut=st.none() | st.integers(0, 200))
def test_patch_any_diff_is_applied_whole_or_not_at_all(
    tmp_path_factory: pytest.TempPathFactory, sections: list[str], cut: int | None
) -> None:
    assert_applied_or_untouched(tmp_path_factory.mktemp("any"), "".join(sections)[:cut])


def assert_applied_or_untouched(top: Path, text: str) -> None:
    root = top / "workspace"
    (root / "d").mkdir(parents=True)
    (root / "a.txt").write_text("one\n")
    (root / "d" / "b.txt").write_text("one\n")
    (root / "link").symlink_to("a.txt")
    (root / "link-out").symlink_to("..")
    before, beyond = snapshot(root), outside(top)
    with Workspace(str(root), approve="auto", durability="none") as workspace:
        result = workspace.call("codex", "apply_patch_json", {"patch": text})
    assert outside(top) == beyond
    if result.error:
        assert result.error.code != "internal_error"
        assert snapshot(root) == before
    else:
        told: dict[str, Any] = result.output if isinstance(result.output, dict) else {}
        assert {each["path"] for each in told["results"] if each.get("deleted")}.isdisjoint(snapshot(root))


def outside(top: Path) -> Tree:
    return {name: what for name, what in snapshot(top).items() if not name.startswith("workspace")}
