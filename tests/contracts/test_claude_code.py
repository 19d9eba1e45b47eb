"""Tests what the contract of claude-code cannot hold: fetched pages, stale files, and whole hundreds of files."""

from pathlib import Path
from typing import Any

import pytest
from support.loopback_server import Site, page

from handrail import Verdict, Workspace
from handrail.workspace import default_session

HTML = b"<html><head><title>T</title></head><body><h1>Hello</h1><p>world</p></body></html>"


def fetch(root: Path, site: Site, **params: object) -> Any:
    with Workspace(str(root), approve="auto", allow_hosts=[site.netloc]) as workspace:
        return workspace.call("claude-code", "WebFetch", {"url": site.url(), "prompt": "summarise", **params})


def test_web_fetch_returns_page_and_says_that_prompt_was_not_run(root: Path) -> None:
    with Site(page(HTML, "text/html")) as site:
        result = fetch(root, site)
    assert result.output == "# Hello\n\nworld\n"
    assert result.warnings == ["the prompt was not run: the output is the page itself"]
    facts = result.metadata
    assert (facts["code"], facts["codeText"], facts["bytes"]) == (200, "OK", len(HTML))


def test_web_fetch_long_page_goes_on_at_offset(root: Path) -> None:
    with Site(page(b"x" * 150_000, "text/plain")) as site:
        first = fetch(root, site).output
        assert first.endswith("x\n\n(Characters 0-100000 of 150000; use offset 100000 to read more.)")
        assert fetch(root, site, offset=100_000).output == "x" * 50_000


def test_edit_of_file_that_others_changed_is_refused_with_their_change(workspace: Workspace, root: Path) -> None:
    path = str(root / "a.txt")
    (root / "a.txt").write_text("one\n")
    assert workspace.call("claude-code", "Read", {"file_path": path}).success
    (root / "a.txt").write_text("one\ntheirs\n")
    error = workspace.call("claude-code", "Edit", {"file_path": path, "old_string": "one", "new_string": "1"}).error
    assert error is not None
    assert error.message == "File has been unexpectedly modified. Read it again before attempting to write it."
    assert "+theirs" in error.suggestion
    assert workspace.call("claude-code", "Read", {"file_path": path}).success
    assert workspace.call("claude-code", "Edit", {"file_path": path, "old_string": "one", "new_string": "1"}).success


@pytest.mark.parametrize("tool", ["Write", "Edit"])
def test_deleted_file_counts_as_unread_when_it_comes_back(tool: str, workspace: Workspace, root: Path) -> None:
    path, file = str(root / "a.txt"), root / "a.txt"
    file.write_text("one\n")
    workspace.call("claude-code", "Read", {"file_path": path})
    file.unlink()
    workspace.call("claude-code", "Read", {"file_path": path})
    file.write_text("another\n")
    params = {"content": "x"} if tool == "Write" else {"old_string": "another", "new_string": "x"}
    error = workspace.call("claude-code", tool, {"file_path": path, **params}).error
    assert error is not None
    assert error.code == "not_read_yet"


def test_glob_shows_the_newest_hundred(workspace: Workspace, root: Path) -> None:
    for number in range(101):
        (root / f"f{number}").write_text("")
    result = workspace.call("claude-code", "Glob", {"pattern": "f*"})
    assert (result.metadata["numFiles"], result.metadata["totalMatches"], result.metadata["truncated"]) == (
        100,
        101,
        True,
    )


@pytest.mark.parametrize("engine", ["ripgrep", "builtin"])
@pytest.mark.parametrize(
    "params",
    [
        {"output_mode": "count"},
        {"output_mode": "files_with_matches"},
        {"output_mode": "content", "-A": 1, "-B": 2},
        {"output_mode": "content", "-o": True},
        {"output_mode": "content", "multiline": True},
        {"output_mode": "count", "type": "py", "glob": "!x*"},
    ],
)
def test_grep_protected_file_is_never_counted(
    engine: str, params: dict[str, object], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "builtin":
        monkeypatch.setattr("handrail.kernel.search.searcher.program", lambda: None)
    (root / "secret.key").write_text("needle\n")
    (root / "open.py").write_text("a\nneedle one\nb needle\n")
    (root / "xopen.py").write_text("needle\n")
    with Workspace(str(root), approve="auto", protect=["*.key"]) as workspace:
        result = workspace.call("claude-code", "Grep", {"pattern": "needle", **params})
    assert result.success
    assert "open.py" in result.text
    assert "secret" not in str(result.to_dict())


def bash(workspace: Workspace, command: str, **params: object) -> Any:
    return workspace.call("claude-code", "Bash", {"command": command, **params})


def test_bash_background_output_is_read_by_its_file(workspace: Workspace) -> None:
    started = bash(workspace, "echo first; sleep 1000", run_in_background=True)
    file = started.output.rpartition("written to: ")[2]
    while "first" not in (shown := workspace.call("claude-code", "Read", {"file_path": file})).output:
        assert shown.success
    assert shown.output == "     1\tfirst"
    task = started.metadata["backgroundTaskId"]
    assert workspace.call("claude-code", "TaskStop", {"task_id": task}).success
    assert workspace.call("claude-code", "Read", {"file_path": file}).output == "     1\tfirst"


def test_bash_output_file_is_no_way_out(workspace: Workspace, root: Path) -> None:
    file = Path(bash(workspace, "sleep 1000", run_in_background=True).output.rpartition("written to: ")[2])
    for path in (
        file.parent,
        file.parent / "..",
        f"{file.parent}/./{file.name}",
        file.with_name("other.txt"),
        "/etc/passwd",
    ):
        error = workspace.call("claude-code", "Read", {"file_path": str(path)}).error
        assert error is not None
        assert error.code == "path_outside_workspace", path
    for tool, params in (("Write", {"content": "x"}), ("Edit", {"old_string": "", "new_string": "x"})):
        error = workspace.call("claude-code", tool, {"file_path": str(file), **params}).error
        assert error is not None
        assert error.code == "path_outside_workspace"


def test_bash_output_file_replaced_by_link_shows_no_other_file(workspace: Workspace, tmp_path: Path) -> None:
    file = Path(bash(workspace, "echo mine; sleep 1000", run_in_background=True).output.rpartition("written to: ")[2])
    (tmp_path / "secret").write_text("secret")
    file.unlink()
    file.symlink_to(tmp_path / "secret")
    assert "secret" not in workspace.call("claude-code", "Read", {"file_path": str(file)}).text


@pytest.mark.parametrize("directory", ["/etc", "$PWD/../..", "$PWD/../../etc", "$PWD/out", "$PWD/none", "$PWD/a.txt"])
def test_bash_forged_directory_stays_in_workspace(directory: str, workspace: Workspace, root: Path) -> None:
    """Report another directory at the end of the output: the next command begins in the root."""
    (root / "out").symlink_to("/etc")
    (root / "a.txt").write_text("")
    mark = 'mark=$(grep -o "<handrail-directory-[0-9a-f]*>" <<< "$BASH_EXECUTION_STRING"); test -n "$mark" || exit 9'
    assert bash(workspace, f'{mark}; trap - EXIT; printf "\\n%s{directory}\\n" "$mark"').success
    assert bash(workspace, "pwd").output == str(root)


def test_bash_long_command_text_and_output_show_no_mark(workspace: Workspace) -> None:
    for command in ("printf x", "echo x; cd /", "seq 100000 | tail -1", "exit 7", "echo a; cd /tmp; exit 1"):
        result = bash(workspace, command)
        assert "handrail-directory" not in str(result.to_dict()), command


@pytest.mark.parametrize("policy", ["auto", "never"])
def test_bash_sandbox_is_never_switched_off_by_call(policy: Any, root: Path) -> None:
    with Workspace(str(root), approve=policy) as workspace:
        for given in (True, 1, "true"):
            result = bash(workspace, "touch made", dangerouslyDisableSandbox=given)
            assert not result.success
            assert not (root / "made").exists()


def test_bash_question_shows_the_command_itself(root: Path) -> None:
    asked = []

    def approver(question: Any) -> Verdict:
        asked.append((question.command, question.directory))
        return Verdict.allow()

    (root / "src").mkdir()
    with Workspace(str(root), approver=approver) as workspace:
        bash(workspace, "cd src")
        bash(workspace, "ls -l", description="List")
    assert asked == [("cd src", ""), ("ls -l", "src")]


def test_bash_ended_command_is_no_job(workspace: Workspace) -> None:
    bash(workspace, "true")
    bash(workspace, "sleep 1000", run_in_background=True)
    jobs = default_session(workspace).jobs.list()
    assert [job.text for job in jobs] == ["sleep 1000"]
