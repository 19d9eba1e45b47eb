"""Searching against the `rg` binary doing the same work, in turns, over some 50 000 files and 500 MB.

The limit is ripgrep printing, or counting, what the question asks for, with the same files in scope and its own
threads. It is not asked to sort, and it is not confined.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable

from bench.corpus import corpus
from bench.measure import Row, compare, show
from handrail import ToolRouter, Workspace
from handrail.kernel.search.rg_process import program
from handrail.kernel.search.searcher import Searcher
from handrail.ops.glob.ignore_rules import DEFAULT_EXCLUSIONS
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest

RARE, NOTHING, COMMON = "PyUnicode_DecodeUTF8Stateful", "no such text anywhere 7c41", "the"
WORD = "import"
"""Stands on 2 to 3 % of the lines, as names do that a model looks for; `COMMON` stands on a third."""
SOME = "PyUnicode_DecodeUTF8|ENOTSUP|raise NotImpl"
CASES = [
    ("rare literal", RARE, 100, ["--line-number"]),
    ("no match", NOTHING, 100, ["--line-number"]),
    ("alternation", SOME, 100, ["--line-number"]),
    ("common word, 100 shown, exact total", COMMON, 100, ["--count"]),
]
SCOPE = ["--no-config", "--hidden", "--no-require-git", *(f"--glob=!{name}/" for name in Scope().exclusions)]


def run() -> list[Row]:
    place, rg = corpus(), program()
    if rg is None:
        return []
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fast, slow = Searcher(), Searcher(engine="builtin")
        rows = [
            compare(f"{name} / rg", _search(fast, fd, text, limit), _rg(rg, place, *how, "-e", text), 1.25, rounds=9)
            for name, text, limit, how in CASES
        ]
        rows.append(
            compare(
                "glob **/*.py / rg --files -g",
                lambda: fast.find(fd, FindRequest(Scope(include=("**/*.py",)))),
                _rg(rg, place, "--files", "-g", "**/*.py"),
                1.25,
                rounds=15,
            )
        )
        rows.append(_limited(fast, fd, rg, place))
        rows += _tools(rg, place)
        rows.append(_small(fast, rg))
        rows += [
            compare(
                f"built-in: {name} / rg",
                _search(slow, fd, text, limit),
                _rg(rg, place, *how, "-e", text),
                5,
                rounds=3,
            )
            for name, text, limit, how in CASES
        ]
    finally:
        os.close(fd)
    return rows


def _limited(fast: Searcher, fd: int, rg: str, place: str) -> Row:
    """With limits whose victims must be named, which ripgrep does not do."""
    scope = Scope(max_depth=10, max_file_bytes=1 << 20)
    return compare(
        "rare literal, what limits leave out named / rg",
        lambda: fast.search(fd, SearchRequest(RARE, scope=scope)),
        _rg(rg, place, "--line-number", "--max-depth=10", "--max-filesize=1M", "-e", RARE),
        1.75,
        rounds=9,
    )


def _tools(rg: str, place: str) -> list[Row]:
    """Whole calls, with the limits, exclusions and warnings of their dialects; ripgrep prints lines through a pipe."""
    lines = ["--line-number", "--no-heading"]
    excluded = [f"--glob=!{name}/" for name in DEFAULT_EXCLUSIONS]
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as home:
        os.environ["HANDRAIL_STATE_DIR"], os.environ["HANDRAIL_CONFIG_DIR"] = f"{home}/state", f"{home}/config"
        with Workspace(place, approve="auto") as workspace:
            context, file = workspace.tools("context"), workspace.tools("file")

            def called(tools: ToolRouter, name: str, arguments: dict[str, object]) -> Callable[[], object]:
                def call() -> None:
                    result = tools.call(name, arguments)
                    assert result.success, result

                return call

            return [
                compare(
                    "context.grep: common word, exact total / rg through a pipe",
                    called(context, "grep", {"pattern": WORD}),
                    _rg(rg, place, *excluded, *lines, "-e", WORD),
                    1,
                    rounds=9,
                ),
                compare(
                    "context.grep: a word that is nowhere / rg through a pipe",
                    called(context, "grep", {"pattern": NOTHING}),
                    _rg(rg, place, *excluded, *lines, "-e", NOTHING),
                    1.1,
                    rounds=9,
                ),
                compare(
                    "file.search: rare literal / rg through a pipe",
                    called(file, "file.search", {"pattern": RARE}),
                    _rg(rg, place, *lines, "-e", RARE),
                    1.1,
                    rounds=9,
                ),
            ]


def _small(fast: Searcher, rg: str) -> Row:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as home:
        for number in range(20):
            with open(f"{home}/{number}.txt", "w", encoding="utf-8") as file:
                file.write(f"some text\nneedle {number}\n")
        fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return compare(
                "20 small files / bare rg",
                _search(fast, fd, "needle", 100),
                _rg(rg, home, "--line-number", "-e", "needle"),
                2,
                rounds=40,
            )
        finally:
            os.close(fd)


def _search(searcher: Searcher, fd: int, pattern: str, limit: int) -> Callable[[], object]:
    return lambda: searcher.search(fd, SearchRequest(pattern, limit=limit))


def _rg(rg: str, place: str, *arguments: str) -> Callable[[], object]:
    return lambda: subprocess.run([rg, *SCOPE, *arguments, "."], cwd=place, stdout=subprocess.PIPE, check=False)


if __name__ == "__main__":
    show("search", run())
