"""Checks that globs match the same files as in ripgrep, except `[!a]`, which also matches a slash in ripgrep."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.search_trees import plant

from handrail.kernel.search.rg_process import program
from handrail.kernel.search.searcher import Searcher
from handrail.ops.search.scope import FindRequest, Scope

EXAMPLES = int(os.environ.get("HANDRAIL_EXAMPLES", "150"))
NAMES = ["a", "b", "ab", "aab", "a.b", "B", "-", "[x]", "{a}", "abc", "b.a"]
PIECES = st.sampled_from(
    ["a", "b", "*", "?", "[ab]", "[a-c]", "{a,b}", "{ab,{b,a*}}", ".", r"\[", r"\{a\}", "**", "[x-]"]
)
PARTS = st.one_of(st.just("**"), st.lists(PIECES, min_size=1, max_size=4).map("".join).filter(lambda part: part != "."))
GLOBS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("globs")
    plant({f"{one}.d/{two}.d/{three}": b"" for one in NAMES[:4] for two in NAMES[4:8] for three in NAMES}, str(root))
    plant({f"{one}.d/{name}": b"" for one in NAMES[:4] for name in NAMES}, str(root))
    plant(dict.fromkeys(NAMES, b""), str(root))
    return root


@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(GLOBS, st.booleans())
def test_builtin_glob_finds_same_files_as_ripgrep(place: Path, glob: str, fold_case: bool) -> None:
    rg = program()
    assert rg is not None
    listed = subprocess.run(
        [rg, "--no-config", "--files", "--hidden", "-0", f"--{'i' if fold_case else ''}glob=/{glob}"],
        cwd=place, capture_output=True, text=True, check=False,
    ).stdout.split("\0")[:-1]  # fmt: skip
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        request = FindRequest(Scope(include=(glob,), anywhere=False, fold_case=fold_case), limit=10_000)
        assert Searcher(engine="builtin").find(fd, request).files == sorted(listed)
    finally:
        os.close(fd)
