"""Tests `handrail agent`: output, exit codes, Ctrl-C, kills and --resume, --replay."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from agent.conftest import call
from support.command_line import ARGV, at_terminal, handrail, usage_error
from support.page_client import PageClient, running_page

Script = Callable[..., str]
TURNS = [
    {"text": "one", "calls": [call("file.write", path="a.txt", content="1")]},
    {"text": "two", "calls": [call("file.write", path="b.txt", content="2"), call("file.list", path=".")]},
    {"text": "three", "calls": [call("file.patch", path="a.txt", patches=[{"find": "1", "replace": "11"}])]},
    {"text": "all done"},
]
TREE = {"a.txt": "11", "b.txt": "2"}


def tree(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in root.iterdir() if path.suffix == ".txt"}


def agent(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return handrail("agent", *arguments, "--root", str(root), "--approve", "auto")


def test_agent_in_pipe_prints_final_answer_alone(root: Path, script: Script) -> None:
    done = agent(root, "task", "--model", script(*TURNS))
    assert (done.returncode, done.stdout, done.stderr) == (0, "all done\n", "")
    assert tree(root) == TREE


def test_agent_json_prints_one_event_a_line(root: Path, script: Script) -> None:
    done = agent(root, "task", "--model", script(*TURNS), "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [e["type"] for e in events if e["type"] in ("call", "result")] == ["call", "result"] * 4
    assert events[-1]["type"] == "end"
    assert "".join(e["text"] for e in events if e["type"] == "text") == "onetwothreeall done"


@pytest.mark.parametrize(
    ("option", "code"),
    [(("--steps", "1"), 20), (("--seconds", "0.000001"), 21), (("--tokens", "1"), 22), (("--money", "1"), 23)],
)
def test_agent_over_budget_exits_with_its_code(root: Path, script: Script, option: tuple[str, str], code: int) -> None:
    done = agent(root, "task", "--model", script(*TURNS), *option)
    assert done.returncode == code
    assert "budget" in done.stderr


def test_agent_killed_at_any_event_resumes_to_same_tree(root: Path, script: Script, tmp_path: Path) -> None:
    name, path = script(*TURNS), tmp_path / "t.json"
    lines = 0
    while True:
        for each in root.iterdir():
            each.unlink()
        path.unlink(missing_ok=True)
        lines += 1
        command = ["agent", "task", "--model", name, "--root", str(root), "--approve", "auto", "--json"]
        with subprocess.Popen([*ARGV, *command, "--trajectory", str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout
            seen = [line for _ in range(lines) if (line := process.stdout.readline())]
            process.kill()
        if len(seen) < lines:
            break
        done = handrail("agent", "--resume", str(path), "--model", name, "--root", str(root), "--approve", "auto")
        assert (done.returncode, done.stdout) == (0, "all done\n"), (lines, done.stderr)
        assert tree(root) == TREE
    assert lines > 10


def test_agent_replay_repeats_calls_without_model(root: Path, script: Script, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    agent(root, "task", "--model", script(*TURNS), "--trajectory", str(path))
    other = tmp_path / "other"
    other.mkdir()
    done = handrail("agent", "--replay", str(path), "--root", str(other), "--approve", "auto")
    assert (done.returncode, done.stdout) == (0, "all done\n")
    assert tree(other) == TREE


@pytest.mark.sandbox
def test_agent_interrupted_once_ends_after_step(root: Path, script: Script) -> None:
    waits = {
        "text": "w",
        "calls": [call("bash", command="echo begun > begun.txt; until [ -e go ]; do sleep 0.05; done")],
    }
    name = script(waits, {"text": "never said"})
    command = [
        "agent",
        "task",
        "--model",
        name,
        "--dialect",
        "bash",
        "--root",
        str(root),
        "--approve",
        "auto",
        "--json",
    ]
    with subprocess.Popen([*ARGV, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        while json.loads(process.stdout.readline())["type"] != "call":
            pass
        process.send_signal(signal.SIGINT)
        assert "stopping after this step" in process.stderr.readline()
        (root / "go").touch()
        rest = process.stdout.read()
    assert process.returncode == 130
    assert json.loads(rest.splitlines()[-1])["status"] == "stopped"
    assert json.loads(rest.splitlines()[0])["success"] is True


@pytest.mark.sandbox
def test_agent_interrupted_twice_ends_at_once(root: Path, script: Script) -> None:
    name = script({"calls": [call("bash", command="sleep 600")]}, {"text": "never said"})
    command = [
        "agent",
        "task",
        "--model",
        name,
        "--dialect",
        "bash",
        "--root",
        str(root),
        "--approve",
        "auto",
        "--json",
    ]
    with subprocess.Popen([*ARGV, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        while json.loads(process.stdout.readline())["type"] != "call":
            pass
        process.send_signal(signal.SIGINT)
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 130
    assert json.loads(rest.splitlines()[-1])["status"] == "stopped"


def test_agent_question_is_answered_on_page(root: Path, script: Script) -> None:
    name = script(TURNS[0], {"text": "done"})
    command = [*ARGV, "agent", "task", "--model", name, "--root", str(root)]
    with running_page() as page:
        client = PageClient(page)
        events = client.follow()
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
            question = events.question()
            assert client.post("/api/answer", {"question": question["id"], "answer": "once"}).status_code == 200
            out, _ = process.communicate()
        events.close()
        client.close()
    assert (process.returncode, out, tree(root)) == (0, "done\n", {"a.txt": "1"})


def test_agent_shows_no_diff_of_an_earlier_run(root: Path, script: Script) -> None:
    agent(root, "task", "--model", script(TURNS[0], TURNS[3]))
    reads = script({"calls": [call("file.read", path="a.txt")]}, TURNS[3])
    done = at_terminal("agent", "task", "--root", str(root), "--approve", "auto", "--model", reads)
    assert done.returncode == 0
    assert "+++" not in done.stderr


@pytest.mark.sandbox
def test_agent_keeps_keys_from_commands_and_files(
    root: Path, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, path = "sk-ant-verysecretverysecret", tmp_path / "t.json"
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, key)
    agent(
        root,
        "task",
        "--model",
        script({"calls": [call("bash", command="env")]}, {"text": "d"}),
        "--dialect",
        "bash",
        "--trajectory",
        str(path),
        "--log",
        str(tmp_path / "log"),
    )
    assert "PATH=" in path.read_text()
    assert key not in path.read_text() + (tmp_path / "log").read_text()


def test_agent_without_task_or_model_is_a_usage_error(root: Path, script: Script) -> None:
    assert agent(root).returncode == 2
    assert agent(root, "task").returncode == 2
    wrong = agent(root, "task", "--model", "anthropc:claude")
    assert wrong.returncode == 2
    assert "cannot use the model anthropc:claude" in wrong.stderr
    assert "Write PROVIDER:NAME" in wrong.stderr


def test_agent_without_key_names_variable_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    said = usage_error(agent(root, "task", "--model", "anthropic:claude-opus-5-5"))
    assert said.endswith("claude-opus-5-5: Set the `ANTHROPIC_API_KEY` environment variable")
