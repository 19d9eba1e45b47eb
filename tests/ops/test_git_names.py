"""Tests what a git directory may contain: names, todo lists and records."""

import pytest

from handrail.ops.git_names import belongs, is_harmless, may_be_written, pointed_to


@pytest.mark.parametrize(
    "name",
    [
        "HEAD",
        "HEAD.lock",
        "CHERRY_PICK_HEAD",
        "index.stash.123.lock",
        "next-index-7.lock",
        "packed-refs.new",
        "gc.pid.lock",
    ],
)
def test_may_be_written_ordinary_git_file_is_allowed(name: str) -> None:
    assert may_be_written(name, is_directory=False)
    assert not may_be_written(name, is_directory=True)


@pytest.mark.parametrize(
    "name",
    [
        "config",
        "config.lock",
        "config.worktree",
        "commondir",
        "gitdir",
        "hooks",
        "HEAD.evil",
        "head",
        "index.",
        "objects",
    ],
)
def test_may_be_written_other_git_file_is_refused(name: str) -> None:
    assert not may_be_written(name, is_directory=False)


def test_may_be_written_only_ordinary_git_directories() -> None:
    assert all(may_be_written(name, is_directory=True) for name in ("refs", "logs", "objects", "rebase-merge", "lfs"))
    assert not any(may_be_written(name, is_directory=True) for name in ("hooks", "worktrees", "modules", "anything"))


def test_belongs_only_git_object_names() -> None:
    assert belongs("objects", "ab")
    assert belongs("objects/info", "commit-graph")
    assert belongs("refs/heads", "anything")
    assert not belongs("objects", "abc")
    assert not belongs("objects/info", "alternates")


@pytest.mark.parametrize(
    ("name", "content", "harmless"),
    [
        (
            "rebase-merge/git-rebase-todo",
            b"pick 1 x\n# exec y\n\nfixup -C 2\nmerge -C 3 a # b\nlabel x\nu refs/x\n",
            True,
        ),
        ("rebase-merge/git-rebase-todo", b"pick 1 x\nexec y\n", False),
        ("rebase-merge/git-rebase-todo", b"  x y\n", False),
        ("rebase-merge/git-rebase-todo", b"picky 1\n", False),
        ("rebase-merge/git-rebase-todo", b"pick \xff\n", False),
        ("rebase-merge/strategy", b"ort\n", True),
        ("rebase-merge/strategy", b"x/../evil\n", False),
        ("rebase-merge/strategy_opts", b" '--ignore-space-change'\n", True),
        ("rebase-merge/strategy_opts", b"$(evil)\n", False),
        ("rebase-merge/author-script", b"GIT_AUTHOR_NAME='O'\\''Neil'\nGIT_AUTHOR_DATE='@1 +0000'\n", True),
        ("rebase-merge/author-script", b"GIT_AUTHOR_NAME='a'; evil\n", False),
        ("rebase-apply/apply-opt", b" '--unsafe-paths'\n", False),
        ("sequencer/opts", b"[options]\n\tmainline = 1\n\tstrategy = ort\n", True),
        ("sequencer/opts", b"[options]\nstrategy = x/../evil\n", False),
        ("BISECT_NAMES", b" 'a' 'b c'\n", True),
        ("BISECT_NAMES", b"$(evil)\n", False),
        ("BISECT_LOG", b"git bisect start 'HEAD' 'x'\n# good: [1] $(subject)\n", True),
        ("BISECT_LOG", b"git bisect start $(evil)\n", False),
    ],
)
def test_is_harmless_todo_list_checks_every_line(name: str, content: bytes, harmless: bool) -> None:
    assert is_harmless(name, content) == harmless


@pytest.mark.parametrize(
    ("name", "content", "harmless"),
    [
        ("MERGE_RR", b"1" * 40 + b"\ta/b.txt\0", True),
        ("MERGE_RR", b"", True),
        ("MERGE_RR", b"1" * 40 + b"\t../home/key\0", False),
        ("MERGE_RR", b"1" * 40 + b"\ta/../../key\0", False),
        ("MERGE_RR", b"1" * 40 + b"\t/etc/passwd\0", False),
        ("rebase-apply/apply-opt", b" '--whitespace=fix' '-p2'\n", True),
        ("rebase-apply/apply-opt", b" '--build-fake-ancestor=fa'\n", False),
        ("rebase-apply/apply-opt", b" '--unsafe-paths'\n", False),
    ],
)
def test_is_harmless_files_that_name_paths(name: str, content: bytes, harmless: bool) -> None:
    assert is_harmless(name, content) is harmless


def test_pointed_to_reads_gitdir_line() -> None:
    assert pointed_to(b"gitdir: ../x\n") == "../x"
    assert pointed_to(b"anything: ../x\n") == ""


UNITS = (" ", "\t", "a", "'", "''", "'\\''", "-", "a/", "x ", "#", "pick ", "[", "=", "\0", ".")


@pytest.mark.parametrize(
    "name",
    [
        *("sequencer/opts", "sequencer/todo", "rebase-apply/apply-opt", "rebase-merge/author-script"),
        *("rebase-merge/strategy_opts", "MERGE_RR", "BISECT_NAMES", "BISECT_LOG"),
    ],
)
def test_is_harmless_long_line_takes_linear_time(name: str) -> None:
    """A pattern that gives blanks back and tries again needs hours for such a line."""
    for unit in UNITS:
        for start in ("", "signoff", "git bisect ", "GIT_AUTHOR_NAME='"):
            is_harmless(name, (start + unit * ((1 << 19) // len(unit)) + "!").encode())
