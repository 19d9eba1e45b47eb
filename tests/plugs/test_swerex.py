"""Tests the runtime and the deployment of SWE-ReX with the real package."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.documents import fences
from swerex.exceptions import (
    CommandTimeoutError,
    DeploymentNotStartedError,
    NonZeroExitCodeError,
    SessionDoesNotExistError,
)
from swerex.runtime.abstract import (
    BashAction,
    CloseBashSessionRequest,
    Command,
    CreateBashSessionRequest,
    ReadFileRequest,
    UploadRequest,
    WriteFileRequest,
)

from handrail.fleet.plugs.bridge import FLEETS
from handrail.fleet.plugs.swerex_runtime import HandrailDeployment

pytestmark = [pytest.mark.sandbox, pytest.mark.filterwarnings("ignore")]


def in_runtime(tree: str, act: Callable[[Any], Awaitable[None]]) -> None:
    async def run() -> None:
        deployment = HandrailDeployment(tree, hosts=1)
        with pytest.raises(DeploymentNotStartedError):
            _ = deployment.runtime
        await deployment.start()
        try:
            assert await deployment.is_alive()
            await act(deployment.runtime)
        finally:
            await deployment.stop()

    asyncio.run(run())


def test_swerex_execute_read_write_and_upload(tree: str, tmp_path: Path) -> None:
    async def act(runtime: Any) -> None:
        done = await runtime.execute(Command(command="echo out; echo err >&2; exit 3", shell=True))
        assert (done.stdout, done.stderr, done.exit_code) == ("out\n", "err\n", 3)
        merged = await runtime.execute(Command(command=["sh", "-c", "echo a; echo b >&2"], merge_output_streams=True))
        assert merged.stdout == "a\nb\n"
        with pytest.raises(NonZeroExitCodeError):
            await runtime.execute(Command(command=["false"], check=True))
        with pytest.raises(CommandTimeoutError):
            await runtime.execute(Command(command=["sleep", "5"], timeout=0.3))
        await runtime.write_file(WriteFileRequest(path="/tmp/x/y.txt", content="é"))
        assert (await runtime.read_file(ReadFileRequest(path="/tmp/x/y.txt"))).content == "é"
        (tmp_path / "up").mkdir()
        (tmp_path / "up" / "f").write_text("f")
        await runtime.upload(UploadRequest(source_path=str(tmp_path / "up"), target_path="up"))
        assert (await runtime.read_file(ReadFileRequest(path="up/f"))).content == "f"

    in_runtime(tree, act)


def test_swerex_session_keeps_directory_variables_and_functions(tree: str) -> None:
    async def act(runtime: Any) -> None:
        async def said(command: str, session: str = "default", **more: Any) -> Any:
            return await runtime.run_in_session(BashAction(command=command, session=session, **more))

        await runtime.create_session(CreateBashSessionRequest())
        await runtime.create_session(CreateBashSessionRequest(session="other"))
        await said("mkdir 'a dir'; cd 'a dir'; export X='a \"b\" $c'; Y=(1 2); f() { echo \"f $1\"; }")
        assert (await said("pwd")).output.endswith("/a dir\n")
        assert (await said("echo $X; echo ${Y[1]}; f 3; sh -c 'echo $X'")).output == 'a "b" $c\n2\nf 3\na "b" $c\n'
        assert (await said("echo [$X]", "other")).output == "[]\n"
        failed = await said("cd /; false", check="silent")
        assert failed.exit_code == 1
        assert (await said("pwd")).output == "/\n"
        with pytest.raises(NonZeroExitCodeError):
            await said("exit 4")
        assert (await said("echo still; cat <<'EOF'\nhere 'it' is\nEOF")).output == "still\nhere 'it' is\n"
        await runtime.close_session(CloseBashSessionRequest())
        with pytest.raises(SessionDoesNotExistError):
            await said("true")

    in_runtime(tree, act)


def test_swerex_session_survives_death_of_host(tree: str) -> None:
    import os
    import signal

    async def act(runtime: Any) -> None:
        await runtime.create_session(CreateBashSessionRequest())
        await runtime.run_in_session(BashAction(command="mkdir sub; cd sub; X=1; echo kept > file"))
        (fleet,) = FLEETS._fleets.values()
        os.kill(int(fleet.hosts[0].rpartition("-")[2]), signal.SIGKILL)
        done = await runtime.run_in_session(BashAction(command="cat file; echo $X"))
        assert done.output == "kept\n1\n"

    in_runtime(tree, act)


def test_swerex_example_of_documents_runs(tree: str, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = [each for each in fences("docs/fleet.md", "python") if "HandrailDeployment(" in each]
    exec(code.replace("/path/to/project", tree), {})
    assert "/tmp\n" in capsys.readouterr().out
