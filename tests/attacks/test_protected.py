"""Files that the person keeps from every tool: no name, no link, no search and no command reaches them."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import handrail
from sandboxes import has_bubblewrap

from handrail import Workspace
from handrail.dialects import NAMES
from handrail.settings import BadSettings

SECRET = "TOKEN=hunter2"
RULES = [".env", "*.key", "/conf/private.txt", "vault/"]


needs_bubblewrap = pytest.mark.usefixtures("bubblewrap")


@pytest.fixture
def bubblewrap(tmp_path: Path) -> None:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no bubblewrap here")


def grow(root: Path) -> None:
    for name in (".env", "sub/.env", "id.key", "conf/private.txt", "vault/deep/x.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{SECRET}\n")
    (root / "open.txt").write_text("TOKEN is elsewhere\n")
    (root / "conf/public.txt").write_text("fine\n")


@pytest.fixture
def guarded(root: Path) -> Iterator[Workspace]:
    grow(root)
    with Workspace(str(root), approve="auto", protect=RULES) as workspace:
        yield workspace


def refused(workspace: Workspace, dialect: str, tool: str, params: dict[str, Any], rule: str) -> None:
    result = workspace.call(dialect, tool, params)
    assert result.error is not None, result
    assert result.error.code == "protected_file", result.error
    assert f"is protected by the rule '{rule}'" in result.error.message
    assert result.error.suggestion == "Do without it; only the person can change what is protected"
    assert SECRET not in json.dumps(result.to_dict())


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
def test_no_spelling_of_a_protected_name_is_read_or_written(guarded: Any, path: str, rule: str) -> None:
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
def test_every_tool_of_every_dialect_refuses(guarded: Any, dialect: str, tool: str, params: dict[str, Any]) -> None:
    given = json.loads(json.dumps(params).replace("{root}", guarded.root))
    result = guarded.call(dialect, tool, given)
    assert result.error is not None, result
    assert result.error.code == "protected_file"
    assert (Path(guarded.root) / ".env").read_text() == f"{SECRET}\n"
    assert (Path(guarded.root) / "open.txt").exists()


def test_links_to_protected_files_are_refused_and_listed_as_what_they_are(guarded: Any, root: Path) -> None:
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
    assert guarded.call("file", "file.delete", {"path": "innocent"}).success  # the link alone
    assert (root / ".env").exists()


def test_what_a_protected_link_leads_to_is_protected_under_its_own_name(root: Path) -> None:
    (root / "real.txt").write_text(f"{SECRET}\n")
    (root / ".env").symlink_to("real.txt")
    with Workspace(str(root), approve="auto", protect=RULES) as workspace:
        refused(workspace, "copilot", "read_file", {"path": ".env"}, ".env")
        refused(workspace, "copilot", "read_file", {"path": "real.txt"}, ".env")
        found = workspace.call("copilot", "grep_search", {"pattern": "TOKEN"})
        assert found.output == "Found 0 matches for 'TOKEN':"


def test_a_hard_link_is_known_by_what_it_is(root: Path) -> None:
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


def test_a_file_that_is_moved_out_of_a_protected_place_stays_protected(guarded: Any, root: Path) -> None:
    """As a command could do with the directory around it."""
    guarded.call("copilot", "read_file", {"path": "open.txt"})
    (root / "conf").rename(root / "conf2")
    refused(guarded, "copilot", "read_file", {"path": "conf2/private.txt"}, "/conf/private.txt")
    assert guarded.call("copilot", "read_file", {"path": "conf2/public.txt"}).success
    found = guarded.call("copilot", "grep_search", {"pattern": "TOKEN"})
    assert found.output == "Found 1 matches for 'TOKEN':\n  open.txt:1: TOKEN is elsewhere"


def test_a_new_file_is_not_taken_for_an_old_protected_one(guarded: Any, root: Path) -> None:
    """File systems give the number of a deleted file to the next."""
    guarded.call("copilot", "read_file", {"path": "open.txt"})
    (root / "conf/private.txt").unlink()
    for number in range(20):
        (root / f"new{number}.txt").write_text("new\n")
        assert guarded.call("copilot", "read_file", {"path": f"new{number}.txt"}).success


@pytest.mark.parametrize("engine", ["ripgrep", "builtin"])
def test_no_search_finds_lists_or_counts_them(guarded: Any, engine: str) -> None:
    from handrail.kernel.search import Searcher

    guarded.kernel.__dict__["searcher"] = Searcher(guarded.settings.limits, engine)  # type: ignore[arg-type]
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


@needs_bubblewrap
def test_commands_do_not_reach_them(guarded: Any, root: Path) -> None:
    attempts = [
        "cat .env; cat sub/.env id.key conf/private.txt vault/deep/x.txt",
        "ln .env twin; cat twin",
        "cp .env copy; cat copy",
        "mv .env moved; cat moved",
        "mv conf conf2; cat conf2/private.txt; mv conf2 conf",
        "ln -s .env link; cat link",
        "python3 -c \"import mmap; print(open('.env').read())\"",
        "tar cf - . | tr -d '\\0'",
        "grep -r TOKEN .",
        "cat < .env; head -c 100 vault/deep/x.txt; ls vault; find vault",
        "rm -f .env; rm -rf vault; cat .env",
        "umount .env; cat .env",
        "cat /proc/self/root$PWD/.env; cat /proc/1/cwd/.env",
    ]
    for command in attempts:
        result = guarded.call("codex", "shell", {"command": f"({command}) 2>&1", "timeout_ms": 20_000})
        assert result.success, result
        assert "hunter2" not in result.output["stdout"], (command, result.output)
    for name in (".env", "sub/.env", "id.key", "conf/private.txt", "vault/deep/x.txt"):
        assert (root / name).read_text() == f"{SECRET}\n"
    works = guarded.call("codex", "shell", {"command": "cat open.txt conf/public.txt && echo new > made.txt"})
    assert works.output["returncode"] == 0
    assert (root / "made.txt").read_text() == "new\n"


@needs_bubblewrap
def test_a_diff_of_git_does_not_print_what_was_never_committed(root: Path) -> None:
    grow(root)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-C", str(root)]
    for command in (["init", "-q"], ["add", "open.txt"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    with Workspace(str(root), approve="auto", protect=RULES) as workspace:
        for line in (
            "git add -A -f; git diff --cached",
            "git diff --no-index /dev/null .env",
            "git stash -u; git show",
        ):
            output: Any = workspace.call("codex", "shell", {"command": f"({line}) 2>&1"}).output
            assert "hunter2" not in output["stdout"], line


@needs_bubblewrap
def test_a_file_that_comes_or_is_replaced_later_is_covered_for_the_next_command(guarded: Any, root: Path) -> None:
    first = guarded.call("codex", "shell", {"command": "cat open.txt"})
    assert first.output["returncode"] == 0
    (root / "new.key").write_text(f"{SECRET}\n")
    second = guarded.call("codex", "shell", {"command": "cat new.key 2>&1"})
    assert "hunter2" not in second.output["stdout"]
    (root / "tmp").write_text(f"{SECRET} again\n")
    (root / "tmp").rename(root / ".env")  # as an editor saves
    third = guarded.call("codex", "shell", {"command": "cat .env 2>&1"})
    assert "hunter2" not in third.output["stdout"]
    terminal = guarded.call("codex", "exec_command", {"session_id": "s", "cmd": "cat .env new.key; echo done"})
    assert "hunter2" not in terminal.output["output"]


def test_without_a_sandbox_it_is_said_that_commands_reach_them(root: Path) -> None:
    grow(root)
    with Workspace(str(root), approve="auto", protect=RULES, sandbox="off") as workspace:
        result = workspace.call("codex", "shell", {"command": "true"})
        assert result.warnings == ["commands can read protected files: the sandbox is off"]


@needs_bubblewrap
def test_more_files_than_can_be_covered_stop_commands_rather_than_protection(root: Path) -> None:
    for number in range(12):
        (root / f"{number}.key").write_text("x")
    with Workspace(str(root), approve="auto", protect=["*.key"], limits={"masked_files": 10}) as workspace:
        result = workspace.call("codex", "shell", {"command": "true"})
        assert result.error is not None
        assert result.error.code == "sandbox_unavailable"
        assert "12 protected files are too many to cover" in result.error.message


def test_one_line_switches_on_the_usual_secrets(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(root)
    (root / ".ssh").mkdir()
    (root / ".ssh/config").write_text("x")
    with Workspace(str(root), approve="auto") as workspace:
        assert workspace.call("copilot", "read_file", {"path": ".env"}).success  # off by default
    config = Path(os.environ["HANDRAIL_CONFIG_DIR"])
    config.mkdir(parents=True)
    (config / "config.toml").write_text('protect = "secrets"\n')
    with Workspace(str(root), approve="auto") as workspace:
        for path, rule in ((".env", ".env"), ("id.key", "*.key"), (".ssh/config", ".ssh")):
            refused(workspace, "copilot", "read_file", {"path": path}, rule)
        assert workspace.call("copilot", "read_file", {"path": "conf/private.txt"}).success
    (config / "config.toml").unlink()
    monkeypatch.setenv("HANDRAIL_PROTECT", "secrets")
    with Workspace(str(root)) as workspace:
        refused(workspace, "copilot", "read_file", {"path": ".env"}, ".env")
    monkeypatch.setenv("HANDRAIL_PROTECT", "a,*.b")
    with Workspace(str(root)) as workspace:
        assert workspace.settings.protect == ("a", "*.b")


def test_a_project_can_only_add(root: Path) -> None:
    grow(root)
    (root / ".handrailignore").write_text("# ours\nopen.txt\n!.env\n")
    (root / ".handrail.toml").write_text('protect = ["conf/public.txt"]\n')
    with Workspace(str(root), approve="auto") as workspace:
        refused(workspace, "copilot", "read_file", {"path": "open.txt"}, "open.txt")
        refused(workspace, "copilot", "read_file", {"path": "conf/public.txt"}, "conf/public.txt")
        assert workspace.call("copilot", "read_file", {"path": ".env"}).success
    config = Path(os.environ["HANDRAIL_CONFIG_DIR"])
    config.mkdir(parents=True)
    (config / "config.toml").write_text('protect = ["@secrets", "extra"]\n')
    with Workspace(str(root), approve="auto") as workspace:
        assert workspace.settings.protect == ("@secrets", "extra", "conf/public.txt", "open.txt")
        refused(workspace, "copilot", "read_file", {"path": ".env"}, ".env")
        refused(workspace, "copilot", "read_file", {"path": "open.txt"}, "open.txt")


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("nothing", "there is no list of files called 'nothing'; there is 'secrets'"),
        (["@keys"], "there is no list of files called 'keys'; there is 'secrets'"),
        (["[a"], "protect: '[a' is not a glob: unclosed bracket"),
        ([5], "protect must be a list of strings, not [5]"),
        (7, "protect must be a list of strings, not 7"),
    ],
)
def test_what_makes_no_sense_is_said(root: Path, value: Any, complaint: str) -> None:
    with pytest.raises(BadSettings) as raised:
        Workspace(str(root), protect=value)
    assert str(raised.value) == complaint
    if isinstance(value, list) and isinstance(value[0], str):
        (root / ".handrailignore").write_text(value[0])
        with pytest.raises(BadSettings) as raised:
            Workspace(str(root))
        assert str(raised.value) == f".handrailignore: {complaint}"


def test_our_own_files_in_the_workspace_are_out_of_reach(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise an agent could write its own approvals."""
    monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(root / "conf ig"))
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(root / "state"))
    with Workspace(str(root), approve="auto") as workspace:
        for path in ("conf ig/approvals.toml", "CONF IG/config.toml", "state/workspaces/x/approvals.toml"):
            refused(workspace, "copilot", "create_file", {"path": path, "content": "x"}, "Handrail's own files")
        assert workspace.call("copilot", "create_file", {"path": "conf igx", "content": "x"}).success
        assert "state" not in workspace.call("copilot", "list_dir", {}).output


def test_the_command_line_says_it_too(root: Path) -> None:
    grow(root)
    (root / ".handrailignore").write_text(".env\n")
    done = handrail("call", "file.read", "path=.env", "--root", str(root))
    assert done.returncode == 1
    assert done.stdout.startswith("✗ '.env' is protected by the rule '.env': no tool may reach it\n")


def test_protection_is_worded_in_every_dialect() -> None:
    from handrail.dialects import load
    from handrail.faults import ProtectedPath
    from handrail.words import word

    for name in NAMES:
        said = word(load(name).tables, "read_file", ProtectedPath("a", "*.key"), {"root": "/", "params": {}})
        assert (said.code, "*.key" in said.message) == ("protected_file", True)


@needs_bubblewrap
def test_what_somebody_else_changes_during_a_command_is_neither_named_nor_kept(root: Path) -> None:
    grow(root)
    with Workspace(str(root), approve="auto", protect=RULES) as workspace:
        workspace.call("codex", "shell", {"command": "true"})
        started = workspace.call("codex", "exec_command", {"session_id": "s", "cmd": "cat; echo x > made.txt"})
        assert started.success
        (root / ".env").write_text(f"{SECRET} and more\n")
        ended = workspace.call("codex", "write_stdin", {"session_id": "s", "chars": "\x04"})
        assert ended.success
        done = workspace.call("codex", "shell", {"command": "true"})
        affected = [*ended.files_affected, *done.files_affected]
        assert ".env" not in affected
        assert "made.txt" in affected
    kept = Path(os.environ["HANDRAIL_STATE_DIR"])
    assert not any(b"hunter2" in path.read_bytes() for path in kept.rglob("*") if path.is_file())
