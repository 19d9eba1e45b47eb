"""Tests programs that use a workspace without a dialect: `exec`, bytes, uploads and downloads."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from handrail import CallError, ClosedError, DeniedError, Question, Verdict, Workspace

sandboxed = pytest.mark.sandbox
BINARY = bytes(range(256))


@sandboxed
def test_exec_passes_stdin_environment_and_directory(workspace: Workspace, root: Path) -> None:
    (root / "sub dir").mkdir()
    script = 'cat; printf "%s %s" "$WORD" "$(pwd)"; echo bad >&2; exit 3'
    ran = workspace.exec(["sh", "-c", script], stdin=BINARY, env={"WORD": "a=b c"}, cwd="sub dir")
    assert ran.stdout == BINARY + f"a=b c {root}/sub dir".encode()
    assert (ran.stderr, ran.exit_code, ran.signal, ran.timed_out, ran.ok) == (b"bad\n", 3, None, False, False)


@sandboxed
def test_exec_uses_no_shell(workspace: Workspace) -> None:
    assert workspace.exec(["echo", "$(id); a  b"]).stdout == b"$(id); a  b\n"


@sandboxed
def test_exec_reports_signal_and_timeout(workspace: Workspace) -> None:
    killed = workspace.exec(["sh", "-c", "kill -9 $$"])
    assert (killed.exit_code, killed.signal, killed.timed_out) == (None, signal.SIGKILL, False)
    late = workspace.exec(["sleep", "600"], timeout=0.2)
    assert late.timed_out
    assert not late.ok


@sandboxed
def test_exec_long_output_is_whole_up_to_limit_and_marked_beyond(root: Path) -> None:
    with Workspace(root, approve="auto", limits={"exec_output_bytes": 1 << 20}) as workspace:
        whole = workspace.exec(["head", "-c", str(1 << 20), "/dev/zero"])
        assert (len(whole.stdout), whole.truncated) == (1 << 20, False)
        cut = workspace.exec(["head", "-c", str(1 << 21), "/dev/zero"])
        assert cut.truncated
        assert len(cut.stdout) <= 1 << 20
        assert Path(cut.files[0]).stat().st_size == 1 << 21


@sandboxed
def test_exec_root_has_number_zero_and_no_capability(workspace: Workspace) -> None:
    ran = workspace.exec(["sh", "-c", "id -u; whoami; grep -c 'Cap...:.0*$' /proc/self/status"], user="root")
    if any("reduced" in warning for warning in ran.warnings):
        pytest.skip("there are no user namespaces here")
    assert ran.stdout.split() == [b"0", b"root", b"5"]
    assert workspace.exec(["id", "-u"], user=0).stdout == b"0\n"


@sandboxed
def test_exec_unknown_user_is_refused(workspace: Workspace) -> None:
    with pytest.raises(CallError, match="no user postgres") as caught:
        workspace.exec(["id"], user="postgres")
    assert caught.value.code == "user_not_available"


@sandboxed
def test_exec_missing_program_is_an_error(workspace: Workspace) -> None:
    with pytest.raises(CallError) as caught:
        workspace.exec(["no-such-program"])
    assert caught.value.code == "command_not_started"


@sandboxed
def test_exec_changes_are_recorded_and_undone(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_text("old\n")
    workspace.exec(["sh", "-c", "echo new >a.txt"], call_id="step 7")
    entry = workspace.history().entries(1)[0].entry
    assert (entry.origin.tool, entry.origin.call_id) == ("exec", "step 7")
    workspace.history().undo()
    assert (root / "a.txt").read_text() == "old\n"


@sandboxed
def test_exec_cancelled_task_ends_program(workspace: Workspace, root: Path) -> None:
    os.mkfifo(root / "started")

    async def main() -> None:
        task = asyncio.create_task(workspace.aexec(["sh", "-c", "echo >started; sleep 600; echo >late"]))
        await asyncio.to_thread((root / "started").read_text)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    workspace.close()  # waits for the call, and so for the end of the program
    assert not (root / "late").exists()


def test_exec_question_shows_words_and_input(root: Path) -> None:
    asked = list[Question]()

    def no(question: Question) -> Verdict:
        asked.append(question)
        return Verdict.deny("not today")

    with Workspace(root, approver=no) as workspace:
        with pytest.raises(DeniedError, match="not today"):
            workspace.exec(["sh", "-s", "a b"], env={"A": "1 2"}, stdin=b"rm -r precious\nINPUT\n")
        with pytest.raises(DeniedError):
            workspace.write_bytes("new.bin", BINARY)
    assert asked[0].command == "A='1 2' sh -s 'a b' <<'INPUT_'\nrm -r precious\nINPUT\n\nINPUT_"
    assert asked[1].targets == ("new.bin",)
    assert os.listdir(root) == []


def test_exec_denying_rule_covers_words_and_script_in_input(root: Path) -> None:
    (root / ".handrail.toml").write_text('[[rule]]\ncalls = "curl *"\ndeny = true\n')
    with Workspace(root, approve="auto") as workspace:
        for argv, given in ((["curl", "x"], None), (["env", "curl", "x"], None), (["sh"], b"curl x\n")):
            with pytest.raises(DeniedError):
                workspace.exec(argv, stdin=given)


def test_bytes_of_any_kind_are_written_and_read(workspace: Workspace, root: Path) -> None:
    for content in (b"", b"text\r\n", BINARY, "ä\0".encode()):
        workspace.write_bytes("deep/er/file", content)
        assert (root / "deep/er/file").read_bytes() == content
        assert workspace.read_bytes(Path("deep/er/file")) == content


def test_read_bytes_outside_or_missing_is_an_error(workspace: Workspace) -> None:
    for path, code in (("../x", "path_outside_workspace"), ("none", "file_not_found")):
        with pytest.raises(CallError) as caught:
            workspace.read_bytes(path)
        assert caught.value.code == code


def test_upload_and_download_copy_tree_with_modes(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    source, odd = tmp_path / "source", os.fsdecode(b"\xff name\n")
    (source / "sub").mkdir(parents=True)
    (source / "sub" / odd).write_bytes(BINARY)  # a name of bytes that are no text
    (source / "run").write_text("#!/bin/sh\n")
    (source / "run").chmod(0o755)
    (source / "link").symlink_to("/etc/passwd")
    workspace.upload(source, "copy")
    assert (root / "copy/run").stat().st_mode & 0o111
    assert not (root / "copy/link").is_symlink()
    workspace.download("copy", tmp_path / "back")
    assert (tmp_path / "back/sub" / odd).read_bytes() == BINARY
    assert (tmp_path / "back/run").stat().st_mode & 0o777 == 0o755
    workspace.download("copy/run", f"{tmp_path}/into/")
    assert (tmp_path / "into/run").read_text() == "#!/bin/sh\n"


def test_upload_drops_set_id_bits(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("x")
    (tmp_path / "tool").chmod(0o4755)
    workspace.upload(tmp_path / "tool", "tool")
    assert (root / "tool").stat().st_mode & 0o7777 == 0o755


def test_download_replaces_link_at_target(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    (root / "a").write_text("new")
    (tmp_path / "victim").write_text("old")
    (tmp_path / "target").symlink_to(tmp_path / "victim")
    workspace.download("a", tmp_path / "target")
    assert ((tmp_path / "victim").read_text(), (tmp_path / "target").read_text()) == ("old", "new")


def test_protected_file_is_not_read_or_downloaded(root: Path, tmp_path: Path) -> None:
    (root / ".env").write_text("KEY=secret")
    (root / "a").write_text("plain")
    with Workspace(root, approve="auto", protect="secrets") as workspace:
        with pytest.raises(CallError):
            workspace.read_bytes(".env")
        workspace.download(".", tmp_path / "all")
    assert os.listdir(tmp_path / "all") == ["a"]


def test_async_twins_do_the_same(workspace: Workspace, tmp_path: Path) -> None:
    async def main() -> bytes:
        await workspace.awrite_bytes("a", BINARY)
        await workspace.adownload("a", tmp_path / "a")
        await workspace.aupload(tmp_path / "a", "b")
        return await workspace.aread_bytes("b")

    assert asyncio.run(main()) == BINARY


def test_session_has_raw_access_and_logs_calls(root: Path) -> None:
    with Workspace(root, approve="auto") as workspace, workspace.session() as session:
        session.write_bytes("a", b"x")
        assert session.log.path
        line = json.loads(Path(session.log.path).read_text().splitlines()[0])
        assert (line["dialect"], line["tool"], line["params"]["data"]) == ("raw", "write_bytes", "x")


def test_closed_workspace_raises_closed_error(root: Path) -> None:
    with Workspace(root, approve="auto") as workspace:
        pass
    with pytest.raises(ClosedError):
        workspace.read_bytes("a")
