"""Checks that no name, no link and no search reaches a protected file."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from attacks.protected import RULES, SECRET, grow, refused

from handrail import Workspace

NAMED = [
    (".env", ".env"),
    ("./sub/../.env", ".env"),
    ("sub/.env", ".env"),
    (".ENV", ".env"),
    (".Env", ".env"),
    (".env ", ".env"),
    (".env.", ".env"),
    (".e\u200bnv", ".env"),
    ("missing/.env", ".env"),
    ("other.KEY", "*.key"),
    ("conf/private.txt", "/conf/private.txt"),
    ("conf/../conf/Private.TXT", "/conf/private.txt"),
    ("vault/deep/x.txt", "vault/"),
    ("vault/none", "vault/"),
]


@pytest.mark.parametrize(("path", "rule"), NAMED)
def test_protected_name_in_any_spelling_is_refused(guarded: Any, path: str, rule: str) -> None:
    """Also where there is no such file: whether there is one is not told."""
    refused(guarded, "copilot", "read_file", {"path": path}, rule)
    refused(guarded, "copilot", "read_file", {"path": f"{guarded.root}/{path}"}, rule)
    refused(guarded, "copilot", "create_file", {"path": path, "content": "x"}, rule)
    refused(guarded, "copilot", "create_directory", {"path": path}, rule)
    refused(guarded, "file", "file.delete", {"path": path}, rule)
    refused(guarded, "context", "append_file", {"path": path, "content": "x"}, rule)


EVERY_WAY = [
    ("gemini", "read_file", {"absolute_path": "{root}/.env"}),
    ("gemini", "write_file", {"file_path": "{root}/.env", "content": "x"}),
    ("gemini", "replace", {"file_path": "{root}/.env", "old_string": "TOKEN", "new_string": "x"}),
    ("gemini", "list_directory", {"path": "{root}/vault"}),
    ("gemini", "glob", {"pattern": "*", "path": "{root}/vault"}),
    ("gemini", "search_file_content", {"pattern": "x", "path": "{root}/vault"}),
    ("gemini", "run_shell_command", {"command": "ls", "directory": "vault"}),
    ("context", "read_file", {"path": ".env"}),
    ("context", "create_file", {"path": "vault/new", "content": "x"}),
    ("context", "update_file", {"path": ".env", "content": "x"}),
    ("context", "replace_in_file", {"path": ".env", "find": "TOKEN", "replace": "x", "preview_only": True}),
    ("context", "edit_lines", {"path": ".env", "operation": "delete", "start_line": 1, "preview_only": True}),
    ("context", "delete_file", {"path": ".env"}),
    ("context", "list_directory", {"path": "vault"}),
    ("context", "grep", {"pattern": "x", "path": "vault"}),
    ("context", "search", {"query": "x", "path": "vault"}),
    ("copilot", "replace_string_in_file", {"path": ".env", "old_string": "TOKEN", "new_string": "x"}),
    ("copilot", "list_dir", {"path": "vault"}),
    ("copilot", "file_search", {"pattern": "*", "base_path": "vault"}),
    ("file", "file.read", {"path": ".env"}),
    ("file", "file.write", {"path": ".env", "content": "x"}),
    ("file", "file.patch", {"path": ".env", "patches": [{"find": "TOKEN", "replace": "x"}]}),
    ("file", "file.list", {"path": "vault"}),
    ("file", "file.search", {"pattern": "x", "path": "vault"}),
    ("claude-code", "Read", {"file_path": "{root}/.env"}),
    ("claude-code", "Write", {"file_path": "{root}/.env", "content": "x"}),
    ("claude-code", "Edit", {"file_path": "{root}/.env", "old_string": "TOKEN", "new_string": "x"}),
    ("claude-code", "NotebookEdit", {"notebook_path": "{root}/vault/n.ipynb", "cell_id": "a", "new_source": "x"}),
    ("claude-code", "Glob", {"pattern": "*", "path": "{root}/vault"}),
    ("claude-code", "Grep", {"pattern": "x", "path": "{root}/.env"}),
    ("codex", "read_file", {"path": ".env"}),
    ("codex", "list_dir", {"path": "vault"}),
    ("codex", "grep_files", {"pattern": "x", "path": "vault"}),
    ("codex", "shell", {"command": "ls", "workdir": "vault"}),
    ("codex", "exec_command", {"session_id": "s", "cmd": "ls", "workdir": "vault"}),
    ("codex", "apply_patch_freeform", {"patch": "*** Begin Patch\n*** Delete File: .env\n*** End Patch\n"}),
    ("codex", "apply_patch_freeform", {"patch": "*** Begin Patch\n*** Add File: vault/y\n+x\n*** End Patch\n"}),
    (
        "codex",
        "apply_patch_freeform",
        {"patch": "*** Begin Patch\n*** Update File: .env\n*** Move to: moved.txt\n@@\n-x\n+y\n*** End Patch\n"},
    ),
    (
        "codex",
        "apply_patch_freeform",
        {"patch": "*** Begin Patch\n*** Update File: open.txt\n*** Move to: a.key\n*** End Patch\n"},
    ),
    (
        "codex",
        "apply_patch_json",
        {"patch": "diff --git a/.env b/x.txt\nsimilarity index 100%\nrename from .env\nrename to x.txt\n"},
    ),
]


@pytest.mark.parametrize(("dialect", "tool", "params"), EVERY_WAY)
def test_every_tool_of_every_dialect_refuses_protected_file(
    guarded: Any, dialect: str, tool: str, params: dict[str, Any]
) -> None:
    given = json.loads(json.dumps(params).replace("{root}", guarded.root))
    result = guarded.call(dialect, tool, given)
    assert result.error is not None, result
    assert result.error.code == "protected_file"
    assert (Path(guarded.root) / ".env").read_text() == f"{SECRET}\n"
    assert (Path(guarded.root) / "open.txt").exists()


def test_links_to_protected_files_are_refused_but_listed(guarded: Any, root: Path) -> None:
    (root / "innocent").symlink_to(".env")
    (root / "chain").symlink_to("innocent")
    (root / "door").symlink_to("vault")
    refused(guarded, "copilot", "read_file", {"path": "innocent"}, ".env")
    refused(guarded, "copilot", "read_file", {"path": "chain"}, ".env")
    refused(guarded, "copilot", "read_file", {"path": "door/deep/x.txt"}, "vault/")
    refused(guarded, "copilot", "list_dir", {"path": "door"}, "vault/")
    refused(guarded, "file", "file.write", {"path": "innocent", "content": "x"}, ".env")
    listed = guarded.call("copilot", "list_dir", {}).output
    assert listed == "Contents of .:\n  chain\n  door\n  innocent\n  open.txt\n  conf/\n  sub/\n"
    assert guarded.call("file", "file.delete", {"path": "innocent"}).success  # deletes only the link
    assert (root / ".env").exists()


def test_target_of_protected_link_is_protected_under_its_own_name(root: Path) -> None:
    (root / "real.txt").write_text(f"{SECRET}\n")
    (root / ".env").symlink_to("real.txt")
    with Workspace(str(root), approve="auto", protect=RULES) as workspace:
        refused(workspace, "copilot", "read_file", {"path": ".env"}, ".env")
        refused(workspace, "copilot", "read_file", {"path": "real.txt"}, ".env")
        found = workspace.call("copilot", "grep_search", {"pattern": "TOKEN"})
        assert found.output == "Found 0 matches for 'TOKEN':"


def test_hard_link_of_protected_file_is_protected(root: Path) -> None:
    grow(root)
    os.link(root / ".env", root / "twin.txt")
    os.link(root / "vault/deep/x.txt", root / "conf/copy.txt")
    with Workspace(str(root), approve="auto", protect=RULES) as workspace:
        refused(workspace, "copilot", "read_file", {"path": "twin.txt"}, ".env")
        refused(workspace, "copilot", "read_file", {"path": "conf/copy.txt"}, "vault/")
        refused(
            workspace, "file", "file.patch", {"path": "twin.txt", "patches": [{"find": "T", "replace": "x"}]}, ".env"
        )
        for tool, params in (("grep_search", {"pattern": "hunter2"}), ("file_search", {"pattern": "**/*.txt"})):
            output = workspace.call("copilot", tool, params).output
            assert "twin" not in output
            assert "copy" not in output
        ranked: Any = workspace.call("context", "search", {"query": "hunter2 token"}).output
        assert [each["path"] for each in ranked["results"]] == ["open.txt"]
        assert "twin" not in workspace.call("copilot", "list_dir", {}).output


def test_protected_file_moved_with_its_directory_stays_protected(guarded: Any, root: Path) -> None:
    """As a command could do with the directory around it."""
    guarded.call("copilot", "read_file", {"path": "open.txt"})
    (root / "conf").rename(root / "conf2")
    refused(guarded, "copilot", "read_file", {"path": "conf2/private.txt"}, "/conf/private.txt")
    assert guarded.call("copilot", "read_file", {"path": "conf2/public.txt"}).success
    found = guarded.call("copilot", "grep_search", {"pattern": "TOKEN"})
    assert found.output == "Found 1 matches for 'TOKEN':\n  open.txt:1: TOKEN is elsewhere"


def test_new_file_with_reused_inode_is_not_protected(guarded: Any, root: Path) -> None:
    """File systems give the number of a deleted file to the next."""
    guarded.call("copilot", "read_file", {"path": "open.txt"})
    born = (root / "conf/private.txt").stat().st_mtime_ns
    (root / "probe").touch()
    while (root / "probe").stat().st_mtime_ns == born:  # the clock of the file system ticks slowly
        (root / "probe").touch()
    (root / "conf/private.txt").unlink()
    for number in range(20):
        (root / f"new{number}.txt").write_text("new\n")
        assert guarded.call("copilot", "read_file", {"path": f"new{number}.txt"}).success


@pytest.mark.parametrize("engine", ["ripgrep", "builtin"])
def test_searches_neither_find_nor_list_nor_count_protected_files(guarded: Any, engine: str) -> None:
    from handrail.kernel.search.searcher import Searcher

    guarded._services.__dict__["searcher"] = Searcher(guarded.settings.limits, engine)  # type: ignore[arg-type]
    found = guarded.call("copilot", "grep_search", {"pattern": "TOKEN"})
    assert found.output == "Found 1 matches for 'TOKEN':\n  open.txt:1: TOKEN is elsewhere"
    assert found.metadata["files_searched"] == 2
    files = guarded.call("copilot", "file_search", {"pattern": "**/*"})
    assert files.output == "Found 2 files matching '**/*':\n  conf/public.txt\n  open.txt"
    for pattern in (".env", "**/.env", "*.key", "vault/**", "conf/p*"):
        shown = guarded.call("gemini", "glob", {"pattern": pattern}).output
        assert not any(name in shown for name in ("/.env\n", "id.key", "x.txt", "private"))
    grep = guarded.call("context", "grep", {"pattern": "hunter2"}).output
    assert (grep["total_matches"], grep["files_matched"]) == (0, 0)
    ranked = guarded.call("context", "search", {"query": "hunter2 private env"}).output
    assert {each["path"] for each in ranked["results"]} <= {"conf/public.txt", "open.txt"}
    deep = guarded.call("codex", "list_dir", {"depth": 5}).output
    assert deep == {"entries": ["conf/", "sub/", "open.txt", "conf/public.txt"]}
    listed = guarded.call("file", "file.list", {"pattern": "**/*"}).output
    assert [each["path"] for each in listed["files"]] == ["conf/public.txt", "open.txt"]


def test_protected_file_that_is_ignored_is_in_no_warning(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.pem\n*.log\n")
    for name in ("key.pem", "a.log"):
        (tmp_path / name).write_text("needle\n")
    with Workspace(str(tmp_path), protect=["*.pem"]) as workspace:
        found = workspace.call("file", "file.search", {"pattern": "needle"})
    assert found.warnings == ["no match; 1 match in files that .gitignore hides, for example a.log"]
