"""Tests that Handrail applies diffs of `git diff` and `diff -u` like `git apply` and `patch`.

The diffs are of lines that are hard to patch and of real files.
`HANDRAIL_LONG=5000 pytest tests/ops/test_patch_differential.py` runs that many cases of each test.
"""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from ops.patch_trees import Tree, lines, patched, read, real_contents, run, two_trees, write

from handrail.model.faults import Fault, HunkApplied, HunkNotUnique
from handrail.ops.patch import PatchedContent

LONG = int(os.environ.get("HANDRAIL_LONG", "0"))
bounded = settings(
    max_examples=LONG or 60,
    derandomize=not LONG,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
both = pytest.mark.parametrize("real", [False, True], ids=["made", "real"])
needs = {
    name: pytest.mark.skipif(not shutil.which(name), reason=f"no {name} here") for name in ("git", "patch", "diff")
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    run("git", "init", "-q", cwd=root)
    return root


def git_tree(repo: Path, tree: Tree) -> str:
    kept = repo / ".git"
    kept.rename(repo.parent / "kept")
    write(repo, tree)
    (repo.parent / "kept").rename(kept)
    run("git", "add", "-A", cwd=repo)
    return run("git", "write-tree", cwd=repo).stdout.decode().strip()


def git_applies(root: Path, tree: Tree, text: bytes, *options: str) -> Tree | None:
    write(root, tree)
    return read(root) if run("git", "apply", *options, "-", cwd=root, text=text).returncode == 0 else None


@needs["git"]
@both
@bounded
@given(data=st.data())
def test_patch_applies_every_git_diff(repo: Path, real: bool, data: st.DataObject) -> None:
    context = data.draw(st.integers(0, 5))
    # Without context a diff cannot show which line ends a mixed file has around an insertion.
    before, after = data.draw(two_trees(mixed=context > 0, real=real))
    kind = data.draw(st.sampled_from([[], ["-M"], ["-M", "-C", "--find-copies-harder"], ["--no-prefix"], ["-D"]]))
    how = data.draw(st.sampled_from(["--minimal", "--patience", "--histogram"]))
    trees = git_tree(repo, before), git_tree(repo, after)
    text = run("git", "diff", "-a", f"-U{context}", how, *kind, *trees, cwd=repo).stdout
    assume(text)
    assert patched(before, text.decode(errors="surrogateescape")) == after


@needs["git"]
@both
@bounded
@given(data=st.data(), end=st.sampled_from([b"\n", b"\r\n"]), context=st.integers(1, 5))
def test_patch_shifted_hunk_matches_git_or_is_refused(
    tmp_path: Path, real: bool, data: st.DataObject, end: bytes, context: int
) -> None:
    made = st.lists(lines, min_size=6, max_size=30)
    base = data.draw(real_contents().map(lambda text: text.replace(b"\r", b"").split(b"\n")) if real else made)
    changed, shifted = list(base), list(base)
    for text, many in ((changed, 3), (shifted, 5)):
        at = data.draw(st.integers(0, len(base)))
        text[at : at + data.draw(st.integers(0, many))] = data.draw(st.lists(lines, min_size=1, max_size=many))
    for name, text in (("a/f", base), ("b/f", changed)):
        write((tmp_path / name).parent, {"f": file_of(text, end)})
    diff = run("git", "diff", "--no-index", "--no-prefix", "-a", f"-U{context}", "a/f", "b/f", cwd=tmp_path).stdout
    start = {"f": file_of(shifted, end)}
    theirs = git_applies(tmp_path / "theirs", start, diff)
    if diff and theirs is not None:
        assert ours_or_fault(start, diff) in (theirs, HunkNotUnique, HunkApplied)


def file_of(text: list[bytes], end: bytes) -> PatchedContent:
    return PatchedContent(b"".join(line + end for line in text), 0o644)


def ours_or_fault(tree: Tree, diff: bytes) -> Tree | type[Fault]:
    try:
        return patched(tree, diff.decode(errors="surrogateescape"))
    except Fault as fault:
        return type(fault)


@needs["diff"]
@needs["patch"]
@both
@bounded
@given(data=st.data())
def test_patch_applies_diff_output_like_patch_program(tmp_path: Path, real: bool, data: st.DataObject) -> None:
    context = data.draw(st.integers(0, 5))
    before, after = data.draw(two_trees(mixed=context > 0, moves=False, real=real))
    plain = {name: PatchedContent(content.data, 0o644) for name, content in before.items()}
    write(tmp_path / "old", plain)
    write(tmp_path / "new", {name: PatchedContent(content.data, 0o644) for name, content in after.items()})
    text = run("diff", "-a", "-r", "-N", f"-U{context}", "old", "new", cwd=tmp_path).stdout
    assume(text)
    command = ("patch", "-p1", "-s", "-f", "--binary", "--no-backup-if-mismatch")
    theirs = tmp_path / "theirs"
    write(theirs, plain)
    assume(run(*command, cwd=theirs, text=text).returncode == 0)
    assert patched(plain, text.decode(errors="surrogateescape")) == read(theirs)
