"""Tests calls that start, read, stop and type into jobs."""

from pathlib import Path
from typing import Any

import pytest
from support.running_dialect import router_of
from support.sandboxes import begun, cancelled_when_begun, none_left, sleeping

from handrail import Question, ToolRouter, Verdict, Workspace
from handrail.tools.tool import ToolResult

pytestmark = pytest.mark.sandbox

LONG = 300.0


@pytest.fixture
def router(workspace: Workspace) -> ToolRouter:
    return router_of(workspace)


def call(router: ToolRouter, tool: str, **params: Any) -> Any:
    result = router.call(tool, params)
    assert result.success, result
    return result.output


def code(result: ToolResult) -> str:
    return result.error.code if result.error else ""


def test_job_that_ends_in_time_is_reported_whole(router: ToolRouter) -> None:
    done = call(router, "start", command="echo out; echo err >&2; exit 4", wait=LONG)
    assert done == {"job": "1", "output": "out\nerr\n", "running": False, "code": 4, "file": ""}


def test_job_is_handed_over_read_and_waited_for(root: Path, router: ToolRouter) -> None:
    text = "mkfifo go on; echo first; read x < go; echo second; read x < on; exit 5"
    handed = call(router, "start", command=text, wait=0.3)
    assert handed["running"]
    with opened_fifo(root / "go") as go:
        seen = handed["output"]
        while "first" not in seen:
            seen += call(router, "read", job="1", wait=0.1)["output"]
        go.write("on\n")
    with open(root / "on", "w") as go:
        go.write("on\n")
    last = call(router, "read", job="1", wait=LONG)
    assert (seen + last["output"], last["running"], last["code"]) == ("first\nsecond\n", False, 5)


def opened_fifo(path: Path) -> Any:
    assert none_left(lambda: [] if path.exists() else [1])
    return open(path, "w")


def test_each_read_returns_new_output_only(root: Path, router: ToolRouter) -> None:
    call(router, "start", command="mkfifo go; exec 3<>go; while read line <&3; do echo got $line; done")
    for word in ("a", "b"):
        with opened_fifo(root / "go") as go:
            go.write(f"{word}\n")
        seen = ""
        while "\n" not in seen:
            seen += call(router, "read", job="1", wait=0.1)["output"]
        assert seen == f"got {word}\n"
    assert call(router, "stop", job="1")["running"] is False


def test_stop_ends_job_with_all_its_processes(router: ToolRouter) -> None:
    marker = "73.25"
    call(router, "start", command=f"trap '' TERM; setsid sleep {marker} & sleep {marker}")
    assert begun(marker, 2)
    stopped = call(router, "stop", job="1")
    assert stopped["running"] is False
    assert sleeping(marker) == []
    assert code(router.call("stop", {"job": "1"})) == "job_ended"


def test_job_ends_at_its_own_deadline(router: ToolRouter) -> None:
    assert call(router, "start", command="echo a; sleep 100", wait=LONG, seconds=0.3)["output"] == "a\n"


def test_job_ends_with_session(root: Path) -> None:
    marker = "74.25"
    with Workspace(str(root), approve="auto") as workspace:
        router = router_of(workspace)
        call(router, "start", command=f"sleep {marker}")
        call(router, "start", command=f"sleep {marker}", terminal=True)
        assert begun(marker, 2)
    assert none_left(lambda: sleeping(marker))


def test_job_with_terminal_takes_input(router: ToolRouter) -> None:
    call(router, "start", command="test -t 0 && read line && echo got $line", terminal=True)
    assert "got hello" in call(router, "type", job="1", chars="hello\n", wait=LONG)["output"]
    assert code(router.call("type", {"job": "1", "chars": "more"})) == "job_ended"


def test_job_without_terminal_has_empty_input_and_no_keyboard(router: ToolRouter) -> None:
    assert call(router, "start", command="cat; echo $?", wait=LONG)["output"] == "0\n"
    call(router, "start", command="sleep 100")
    assert code(router.call("type", {"job": "2", "chars": "x"})) == "no_terminal"


def test_unknown_job_is_refused(router: ToolRouter) -> None:
    for job in ("1", "-1", "x", "", "99999999999999999999"):
        assert code(router.call("read", {"job": job})) == "unknown_job"


def test_too_many_jobs_are_refused(root: Path) -> None:
    with Workspace(str(root), approve="auto", limits={"jobs": 2}) as workspace:
        router = router_of(workspace)
        call(router, "start", command="sleep 100")
        call(router, "start", command="sleep 100")
        assert code(router.call("start", {"command": "true"})) == "too_many_jobs"
        call(router, "stop", job="1")
        assert call(router, "start", command="true", wait=LONG)["code"] == 0


def test_job_start_and_typing_are_asked_but_reading_and_stopping_not(root: Path) -> None:
    asked: list[Question] = []

    def allow(question: Question) -> Verdict:
        asked.append(question)
        return Verdict.allow()

    with Workspace(str(root)) as workspace:
        router = router_of(workspace, allow)
        call(router, "start", command="cat", terminal=True)
        call(router, "type", job="1", chars="text")
        call(router, "read", job="1")
        call(router, "stop", job="1")
    assert [(each.command, each.terminal, each.justification) for each in asked] == [
        ("cat", "", "to see what happens"),
        ("text", "1", ""),
    ]


def test_cancelled_start_stops_job(router: ToolRouter) -> None:
    marker = "75.25"
    result = router.call("start", {"command": f"sleep {marker}", "wait": LONG}, cancel=cancelled_when_begun(marker))
    assert code(result) == "cancelled"
    assert none_left(lambda: sleeping(marker))


def test_changes_of_job_after_its_call_are_recorded(workspace: Workspace, root: Path, router: ToolRouter) -> None:
    (root / "file").write_text("old\n")
    call(router, "start", command="mkfifo go; read x < go; echo new > file")
    with opened_fifo(root / "go") as go:
        go.write("on\n")
    result = router.call("read", {"job": "1", "wait": LONG})
    assert "file" in result.files_affected
    assert workspace.history().undo().done
    assert (root / "file").read_text() == "old\n"


def test_changes_of_job_never_read_are_recorded_at_close(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        router = router_of(workspace)
        call(router, "start", command="mkfifo go; read x < go; echo new > file; read x < go")
        with opened_fifo(root / "go") as go:
            go.write("on\n")
        assert none_left(lambda: [] if (root / "file").exists() and (root / "file").read_text() else [1])
    with Workspace(str(root), approve="auto") as workspace:
        paths = [file.path for each in workspace._services.journal.backwards() for file in getattr(each, "files", ())]
        assert "file" in paths


def test_job_output_file_holds_everything_until_close(root: Path) -> None:
    with Workspace(str(root), approve="auto", limits={"output_bytes": 1000}) as workspace:
        done = call(router_of(workspace), "start", command="seq 10000", wait=LONG, to_file=True)
        whole = Path(done["file"]).read_text()
        assert whole == "".join(f"{n}\n" for n in range(1, 10001))
        assert "bytes of stdout not shown" in done["output"]
    assert not Path(done["file"]).exists()
