"""Tests runs that end half-way: kills between commands and after a summary, undo of a run, Ctrl-C in a question."""

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from agent.conftest import call
from support.command_line import ARGV, handrail
from support.pseudo_terminal import Terminal

Script = Callable[..., str]
COMMANDS = [
    {"text": "one", "calls": [call("bash", command="echo 1 > a.txt")]},
    {"text": "two", "calls": [call("bash", command="sed s/1/2/ a.txt > b.txt"), call("bash", command="mkdir -p d")]},
    {"text": "all done"},
]
LONG = "a line of thought\n" * 60
STEPS = 14
WRITES = [{"text": f"{n} {LONG}", "calls": [call("file.write", path=f"{n}.txt", content=str(n))]} for n in range(STEPS)]


def tree(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in root.rglob("*") if path.is_file()}


def kill_after(lines: int, command: Sequence[str]) -> bool:
    """Kill a run after so many events; return False if it ended before."""
    with subprocess.Popen([*ARGV, *command, "--json"], stdout=subprocess.PIPE) as process:
        assert process.stdout
        seen = [line for _ in range(lines) if (line := process.stdout.readline())]
        process.kill()
    return len(seen) == lines


@pytest.mark.sandbox
@pytest.mark.parametrize("lines", [1, 2, 3, 5, 6, 7, 8, 9, 10])
def test_killed_run_of_commands_resumes_to_same_tree(root: Path, script: Script, tmp_path: Path, lines: int) -> None:
    path, name = tmp_path / "t.json", script(*COMMANDS)
    options = ("--model", name, "--root", str(root), "--approve", "auto")
    assert kill_after(lines, ["agent", "task", *options, "--dialect", "bash", "--trajectory", str(path)])
    done = handrail("agent", "--resume", str(path), *options)
    assert (done.returncode, done.stdout) == (0, "all done\n"), done.stderr
    assert tree(root) == {"a.txt": "1\n", "b.txt": "2\n"}
    assert (root / "d").is_dir()


def compacted(script: Script, path: Path, root: Path) -> tuple[list[str], list[str], dict[str, str]]:
    """Run a task that needs a summary; return its options, the types of its events and the tree at its end."""
    name = script(*WRITES, {"text": "all done"})  # a summary takes one of the answers
    options = ["--model", name, "--root", str(root), "--approve", "auto", "--context-tokens", "4500"]
    whole = handrail("agent", "task", *options, "--json", "--trajectory", str(path))
    events, wanted = [json.loads(line)["type"] for line in whole.stdout.splitlines()], tree(root)
    assert "compact" in events
    assert 5 < len(wanted) < STEPS
    return options, events, wanted


def test_compacted_run_killed_at_every_step_resumes_to_same_tree(root: Path, script: Script, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    options, events, wanted = compacted(script, path, root)
    steps = [number for number, kind in enumerate(events) if kind in ("result", "compact")]
    for lines in steps:
        for each in root.iterdir():
            each.unlink()
        assert kill_after(lines, ["agent", "task", *options, "--trajectory", str(path)])
        done = handrail("agent", "--resume", str(path), *options)
        assert done.returncode == 0, (lines, done.stderr)
        assert tree(root) == wanted, lines


def test_compacted_run_killed_again_and_again_resumes_to_same_tree(root: Path, script: Script, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    options, events, wanted = compacted(script, path, root)
    for each in root.iterdir():
        each.unlink()
    assert kill_after(events.index("compact") - 1, ["agent", "task", *options, "--trajectory", str(path)])
    for lines in (1, 2, 3, 5):
        assert kill_after(lines, ["agent", "--resume", str(path), *options])
    done = handrail("agent", "--resume", str(path), *options)
    assert (done.returncode, tree(root)) == (0, wanted), done.stderr
    assert len(json.loads(path.read_text())["extra"]["sessions"]) == 6


def test_resume_of_running_run_is_refused(root: Path, script: Script, tmp_path: Path) -> None:
    path, name = tmp_path / "t.json", script(WRITES[0], {"text": "all done"})
    options = ("--model", name, "--root", str(root), "--trajectory", str(path))
    with Terminal(*ARGV, "agent", "task", *options) as terminal:
        terminal.until("Approve? (y/n/s/a/e): ")  # the run waits for the user, and goes on to hold its trajectory
        before = path.read_text()
        for again in (("--resume", str(path)), ("another task", "--trajectory", str(path))):
            second = handrail("agent", *again, *options[:4])
            assert (second.returncode, second.stdout) == (2, "")
            assert f"another run writes the trajectory {path}; wait until it has ended" in second.stderr
        assert path.read_text() == before
        terminal.send("y")
        assert terminal.finish()[0] == 0
    assert tree(root) == {"0.txt": "0"}
    done = handrail("agent", "--resume", str(path), *options[:4])  # the lock ended with the run
    assert (done.returncode, done.stdout) == (0, "all done\n")


def test_undo_of_session_takes_whole_run_back(root: Path, script: Script, tmp_path: Path) -> None:
    (root / "0.txt").write_text("before")
    path = tmp_path / "t.json"
    name = script(*WRITES[:3], {"text": "all done"})
    options = ("--model", name, "--root", str(root), "--approve", "auto", "--trajectory", str(path))
    assert handrail("agent", "task", *options).returncode == 0
    assert len(tree(root)) == 3
    session = json.loads(path.read_text())["session_id"]
    done = handrail("undo", "--session", session, "--root", str(root), "--approve", "auto")
    assert done.returncode == 0, done.stderr
    assert tree(root) == {"0.txt": "before"}


def test_interrupt_twice_in_question_ends_run(root: Path, script: Script, tmp_path: Path) -> None:
    path, name = tmp_path / "t.json", script(WRITES[0], {"text": "never said"})
    options = ("--model", name, "--root", str(root), "--trajectory", str(path))
    with Terminal(*ARGV, "agent", "task", *options) as terminal:
        terminal.until("Approve? (y/n/s/a/e): ")
        terminal.send("\x03")
        terminal.until("again to stop at once")
        terminal.send("\x03")
        status, _, _ = terminal.finish()
    assert status == 130
    assert tree(root) == {}
    assert json.loads(path.read_text())["extra"]["status"] == "stopped"
