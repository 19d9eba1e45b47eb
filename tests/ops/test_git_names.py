"""Tests what a git directory may contain: names, todo lists, settings, and submodules of an index."""

import subprocess
from pathlib import Path

import pytest

from handrail.ops.git_names import Index, belongs, is_harmless, is_plain_config, may_be_written, pointed_to, read_index


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
    ("content", "plain"),
    [
        (b'[core]\n\tbare = false\n[remote "origin"]\n\turl = git@host:x.git\n\tfetch = +refs/*:refs/*\n', True),
        (b"# x\n[user]\nname = a\n", True),
        (b"[core]\nfsmonitor = x\n", False),
        (b"[core] fsmonitor = x\n", False),
        (b"[core]\nbare = fal\\\nfsmonitor = x\n", False),
        (b"[include]\npath = x\n", False),
        (b'[remote "o"]\nurl = ext::sh -c evil\n', False),
        (b'[remote "o"]\nurl = --upload-pack=evil\n', False),
        (b'[remote "o"]\nuploadpack = evil\n', False),
        (b"[CORE]\nFsMonitor\n", False),
        (b"[core]\n\xff = x\n", False),
    ],
)
def test_is_plain_config_rejects_settings_that_name_programs(content: bytes, plain: bool) -> None:
    assert is_plain_config(content) == plain


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_read_index_finds_submodules_in_every_version(tmp_path: Path, version: str, form: str) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", f"--object-format={form}")
    digits = "1" * (40 if form == "sha1" else 64)
    for name in ("a", "deep/sub", "deep/subway", "z" * 5000):
        git("update-index", "--add", "--cacheinfo", f"160000,{digits},{name}")
    for name in ("b.txt", "deep/file", "x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
        git("add", name)
    if version == "3":
        git("add", "-N", "b.txt")
    git("update-index", "--index-version", version)
    assert read_index((tmp_path / ".git/index").read_bytes()) == Index(["a", "deep/sub", "deep/subway", "z" * 5000])


def test_read_index_malformed_has_no_submodules() -> None:
    assert read_index(b"") == Index([])
    assert read_index(b"DIRC\0\0\xe0\0") == Index([], plain=False)
    assert read_index(b"DIRC\0\0\0\2\0\0\0\1" + b"\0\0\xe0\0" * 9) == Index([], plain=False)


def test_read_index_invalid_paths_are_not_plain(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    command = ["git", "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},xx/a"]
    subprocess.run(command, cwd=tmp_path, check=True)
    index = (tmp_path / ".git/index").read_bytes()
    assert read_index(index) == Index(["xx/a"])
    for odd in (b"../a", b"./xa", b"/abc", b"a/..", b"xx//"):
        assert read_index(index.replace(b"xx/a", odd)) == Index([], plain=False)


def test_read_index_sparse_checkout_is_plain(tmp_path: Path) -> None:
    script = """git init -q && mkdir -p a b && touch a/x b/y && git add -A
    git -c user.name=a -c user.email=a@b.c commit -qm m && git sparse-checkout set --cone --sparse-index a"""
    subprocess.run(["bash", "-ec", script], cwd=tmp_path, check=True, capture_output=True)
    assert b"b/\0" in (index := (tmp_path / ".git/index").read_bytes())
    assert read_index(index) == Index([])


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
