import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.search_trees import plant

from handrail.kernel.search.ranking import RankRequest
from handrail.kernel.search.searcher import Searcher
from handrail.ops.search.scope import Scope

TREE: dict[str, Any] = {
    "auth/session.py": b"# opens things\nclass Session:\n    pass\n",
    "login.py": b"import sys\n\ndef check_auth(userName):\n    return auth(userName)\n",
    "author.txt": b"\n\nwritten by hand\n",
    "notes.md": b"the author of this text\n" * 20,
    "other.py": b"nothing here\n",
    "node_modules/auth.js": b"auth",
    "data.bin": b"auth\0",
    "auth_empty.py": b"",
}


@pytest.fixture(params=["ripgrep", "builtin"])
def searcher(request: pytest.FixtureRequest) -> Searcher:
    return Searcher(engine=request.param)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[int]:
    plant(TREE, str(tmp_path))
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def test_rank_puts_names_before_text_and_words_before_parts(searcher: Searcher, tree: int) -> None:
    result = searcher.rank(tree, RankRequest("auth", Scope(exclude=("node_modules",))))
    assert [(each.path, each.line, each.content) for each in result.results] == [
        ("auth_empty.py", 0, ""),
        ("author.txt", 3, "written by hand"),
        ("auth/session.py", 1, "# opens things"),
        ("login.py", 3, "def check_auth(userName):"),
        ("notes.md", 1, "the author of this text"),
    ]
    assert (result.total, result.truncated, result.complete) == (5, False, True)


def test_rank_finds_several_words_and_identifiers(searcher: Searcher, tree: int) -> None:
    best = searcher.rank(tree, RankRequest("user name session", limit=2))
    assert [each.path for each in best.results] == ["auth/session.py", "login.py"]
    assert best.results[1].content == "def check_auth(userName):"
    snake = searcher.rank(tree, RankRequest("checkAuth", limit=1, scope=Scope(include=("login.*",))))
    assert [(each.path, each.line) for each in snake.results] == [("login.py", 3)]
    assert not snake.truncated


def test_rank_total_counts_results_beyond_limit(searcher: Searcher, tree: int) -> None:
    result = searcher.rank(tree, RankRequest("auth", Scope(exclude=("node_modules",)), limit=1))
    assert (len(result.results), result.total, result.truncated) == (1, 5, True)
    assert searcher.rank(tree, RankRequest("")).results == []
    assert searcher.rank(tree, RankRequest("zzz")).total == 0


def test_binary_file_is_ranked_by_name_only(searcher: Searcher, tmp_path: Path) -> None:
    plant({"auth.bin": b"\0auth\n", "auth.raw": b"auth\nauth\0", "login.py": b"auth\n"}, str(tmp_path))
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        result = searcher.rank(fd, RankRequest("auth"))
    finally:
        os.close(fd)
    ranked = [(each.path, each.line, each.content) for each in result.results]
    assert ranked == [("auth.bin", 0, ""), ("auth.raw", 0, ""), ("login.py", 1, "auth")]


def test_both_engines_give_same_ranking(tree: int) -> None:
    request = RankRequest("the auth userName import")
    ripgrep, builtin = Searcher(engine="ripgrep").rank(tree, request), Searcher(engine="builtin").rank(tree, request)
    assert ripgrep.results == builtin.results
