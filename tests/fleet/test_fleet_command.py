"""Tests `handrail fleet`: results, logs, status, going on after a kill, and the report."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from support.command_line import handrail

from handrail.fleet.report_page import page
from handrail.fleet.run_report import RunReport
from handrail.kernel.fleet.run_files import append_line, read_lines

pytestmark = pytest.mark.sandbox


@pytest.fixture
def place(tmp_path: Path, tree_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a directory with tasks and an episode, and go there."""
    home = tmp_path / "run here"
    home.mkdir()
    (home / "mine.py").write_text((Path(__file__).parent / "fleet_episodes.py").read_text())
    monkeypatch.chdir(home)
    return home


def write_tasks(place: Path, *tasks: dict[str, Any]) -> str:
    path = place / "tasks.jsonl"
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return str(path)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_fleet_run_writes_one_result_and_log_for_each_task(place: Path, tree_root: Path) -> None:
    tasks = write_tasks(place, *({"id": f"t{n}", "n": n, "tree": str(tree_root)} for n in range(3)))
    done = handrail(
        "fleet", "run", tasks, "--agent", "mine:double", "--tries", "2", "--hosts", "1", "--out", "out", cwd=place
    )
    assert done.returncode == 0, done
    results = lines_of(place / "out" / "results.jsonl")
    assert sorted(each["task"] for each in results) == [f"t{n}#{k}" for n in range(3) for k in (1, 2)]
    assert {each["name"]: each["value"] for each in results} == {f"t{n}": 2 * n for n in range(3)}
    log = lines_of(place / "out" / "logs" / "t1#2.jsonl")
    assert [each["event"] for each in log] == ["began", "call", "call"]
    assert "write_bytes" in handrail("fleet", "logs", "out", "t1#2", cwd=place).stdout
    status = json.loads(handrail("fleet", "status", "out", "--json", cwd=place).stdout)
    assert (status["done"], status["failed"], status["alive"], status["calls"]) == (6, 0, False, 12)


def test_fleet_run_reports_failed_tasks_and_ends_with_one(place: Path, tree_root: Path) -> None:
    tasks = write_tasks(place, {"n": 1}, {"id": "bad"}, {"id": "gone", "n": 1, "tree": "nowhere"})
    done = handrail("fleet", "run", tasks, "--agent", "mine:double", "--hosts", "1", "--out", "out", cwd=place)
    assert done.returncode == 1, done
    found = {each["task"]: each for each in lines_of(place / "out" / "results.jsonl")}
    assert found["1"]["ok"]
    assert "KeyError: 'n'" in found["bad"]["error"]
    assert "nowhere" in found["gone"]["error"]
    shown = handrail("fleet", "report", "out", "--html", "report.html", cwd=place).stdout
    assert re.search(r"^all +3 +0 +0 % +2 ", shown, re.MULTILINE)
    assert "KeyError" in (place / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "give one of --agent"),
        (["--agent", "mine"], "does not name an episode"),
        (["--agent", "nowhere:double"], "nowhere"),
        (["--agent", "mine:nothing"], "cannot be imported"),
        (["--agent", "mine:double", "--tree", "."], "task 2: another task has the id ../x"),
    ],
)
def test_fleet_run_with_wrong_options_says_why(place: Path, options: list[str], says: str) -> None:
    tasks = write_tasks(place, {"id": "../x"}, {"id": "../x"})
    done = handrail("fleet", "run", tasks, "--out", "out", *options, cwd=place)
    assert done.returncode == 2
    assert says in done.stderr


ODD = [
    "../../up",
    "HumanEval/12",
    "a b",
    "x" * 10_000,
    "x" * 10_001,
    ".",
    "ü\u2028\u0085\n|",
    "\ud800",
    "%2e",
    "-n",
    "\x1b[31m",
]


def test_fleet_run_of_tasks_with_odd_names_keeps_each_in_its_own_files(place: Path) -> None:
    tasks = write_tasks(place)
    given = "".join(
        json.dumps({"id": name, "n": n}, ensure_ascii=name == "\ud800") + "\n" for n, name in enumerate(ODD)
    )
    Path(tasks).write_text("\ufeff" + given)
    run = ["fleet", "run", tasks, "--agent", "mine:double", "--hosts", "1", "--out", "out"]
    done = handrail(*run, cwd=place)
    assert done.returncode == 0, done
    assert {each["task"]: each["value"] for each in lines_of(place / "out" / "results.jsonl")} == {
        name: 2 * n for n, name in enumerate(ODD)
    }
    logs = [*(place / "out" / "logs").iterdir()]
    assert len(logs) == len(ODD)
    assert {path.name for path in place.iterdir()} - {"__pycache__"} == {"mine.py", "out", "tasks.jsonl"}
    assert "write_bytes" in handrail("fleet", "logs", "out", "../../up", cwd=place).stdout
    assert "\x1b" not in handrail("fleet", "report", "out", cwd=place).stdout


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 1 is not JSON"),
        ("[1]", "line 1 is not an object"),
        ('{"id": []}', "the id is not a string"),
        ('{"tree": 1}', "the tree is not a path"),
        ("", "has no task"),
        ("\xff", "cannot read"),
    ],
)
def test_fleet_run_of_wrong_task_file_says_why(place: Path, line: str, says: str) -> None:
    (place / "tasks.jsonl").write_bytes(line.encode("latin-1") + b"\n")
    done = handrail("fleet", "run", "tasks.jsonl", "--agent", "mine:double", "--out", "out", cwd=place)
    assert done.returncode == 2
    assert says in done.stderr


def test_fleet_run_into_link_file_or_used_directory(place: Path) -> None:
    tasks = write_tasks(place, {"n": 1})
    (place / "real").mkdir()
    (place / "link").symlink_to("real")
    (place / "nowhere").symlink_to("missing/directory")
    (place / "file").write_text("x")
    run = ["fleet", "run", tasks, "--agent", "mine:double", "--hosts", "1", "--out"]
    assert handrail(*run, "link", cwd=place).returncode == 0
    assert len(lines_of(place / "real" / "results.jsonl")) == 1
    for name, says in (("nowhere", "cannot be used"), ("file", "is a file"), ("link", "has a run already")):
        done = handrail(*run, name, cwd=place)
        assert (done.returncode, says in done.stderr) == (2, True), done


def test_fleet_run_on_full_disk_stops_and_resume_goes_on(place: Path) -> None:
    tasks = write_tasks(place, {"id": "a", "n": 1}, {"id": "b", "n": 2})
    log = place / "out" / "logs" / "a.jsonl"
    log.parent.mkdir(parents=True)
    log.symlink_to("/dev/full")
    done = handrail("fleet", "run", tasks, "--agent", "mine:double", "--hosts", "1", "--out", "out", cwd=place)
    assert (done.returncode, "No space left on device" in done.stderr) == (2, True), done
    assert "fleet resume" in done.stderr
    assert "Traceback" not in done.stderr
    log.unlink()
    assert handrail("fleet", "resume", "out", cwd=place).returncode == 0
    assert sorted(each["task"] for each in lines_of(place / "out" / "results.jsonl")) == ["a", "b"]


def test_second_driver_of_results_is_refused_while_first_works(place: Path) -> None:
    tasks = write_tasks(place, {"marker": str(place / "go")})
    argv = [sys.executable, "-P", "-m", "handrail", "fleet", "run", tasks, "--agent", "mine:wait_for", "--hosts", "1"]
    first = subprocess.Popen([*argv, "--out", "out"], cwd=place)
    _hosts(place)
    for command in (["resume", "out"], ["run", tasks, "--agent", "mine:wait_for", "--out", "out"]):
        second = handrail("fleet", *command, cwd=place)
        assert second.returncode == 2
        assert "another process works on" in second.stderr
    (place / "go").write_text("")
    assert first.wait() == 0
    assert len(lines_of(place / "out" / "results.jsonl")) == 1
    assert len(lines_of(place / "out" / "tasks.jsonl")) == 1


def test_what_episode_prints_is_in_its_log_and_forges_nothing(place: Path) -> None:
    tasks = write_tasks(place, {"id": "a"}, {"id": "b"})
    done = handrail("fleet", "run", tasks, "--agent", "mine:shout", "--hosts", "1", "--out", "out", cwd=place)
    assert done.returncode == 0, done
    results = lines_of(place / "out" / "results.jsonl")
    assert sorted(each["task"] for each in results) == ["a", "b"]
    assert all(each["passed"] is None for each in results)
    for name in ("a", "b"):
        lines = lines_of(place / "out" / "logs" / f"{name}.jsonl")
        printed = "\n".join(each["text"] for each in lines if each["event"] == "printed")
        assert printed.startswith(f'I am {name}\n\\xff\x00\x1b[2J\n{{"task": "forged", "ok": true}}\n')
        assert len(printed) <= 1_000_000
    assert "\x1b[2J" not in done.stderr + done.stdout
    shown = handrail("fleet", "logs", "out", "a", cwd=place).stdout
    assert "| I am a\n" in shown
    assert "\x1b" not in shown


def test_fleet_resume_after_kill_does_only_what_is_missing(place: Path, tree_root: Path) -> None:
    """The driver is killed: its hosts end, finished results stay, and nothing is done twice."""
    count = 10
    given = [{"id": f"t{n}", "steps": 4, "pause": 0.1, "tree": str(tree_root)} for n in range(count)]
    argv = [
        "fleet",
        "run",
        write_tasks(place, *given),
        "--agent",
        "mine:append_steps",
        "--hosts",
        "1",
        "--per-host",
        "2",
    ]
    driver = subprocess.Popen([sys.executable, "-P", "-m", "handrail", *argv, "--out", "out"], cwd=place)
    results = place / "out" / "results.jsonl"
    while not results.exists() or len(results.read_text().splitlines()) < 2:
        time.sleep(0.05)
        assert driver.poll() is None
    pids = [int(each.rpartition("-")[2]) for each in _hosts(place)]
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    before = len(lines_of(results))
    for pid in pids:
        while Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
            time.sleep(0.05)
    said = handrail("fleet", "status", "out", cwd=place).stdout
    assert "no process works on this run" in said
    assert handrail("fleet", "run", argv[2], "--agent", "mine:double", "--out", "out", cwd=place).returncode == 2
    assert handrail("fleet", "resume", "out", cwd=place).returncode == 0
    found = lines_of(results)
    assert before < count
    assert sorted(each["task"] for each in found) == sorted(f"t{n}" for n in range(count))
    assert all(each["value"]["lines"] == ["0", "1", "2", "3"] for each in found)
    left = Path(os.environ["HANDRAIL_STATE_DIR"]) / "fleet" / os.uname().nodename / "hosts"
    assert [*left.iterdir()] == []


def _hosts(place: Path) -> list[str]:
    status = place / "out" / "status.json"
    while not status.exists():
        time.sleep(0.05)
    found: list[str] = json.loads(status.read_text())["hosts"]
    return found


def test_append_line_after_torn_line_keeps_all_others(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    append_line(str(path), {"n": 1})
    with path.open("a") as file:
        file.write('{"n": 2, "tor')
    append_line(str(path), {"n": 3})
    assert [*read_lines(str(path))] == [{"n": 1}, {"n": 3}]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_report_page_shows_hostile_text_as_text_and_loads_nothing() -> None:
    evil = "</td><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x1b[31m"
    result = {
        "task": evil, "name": evil, "model": evil, "dialect": "'\"><a href='x'>", "ok": False, "passed": None,
        "seconds": 1.5, "calls": 3, "cost": 0.25, "deaths": 0, "diverged": [], "error": evil,
    }  # fmt: skip
    made = page(RunReport.of([result, {**result, "ok": True, "passed": True}], 3), evil)
    tags = _Tags()
    tags.feed(made)
    assert tags.found <= {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "p",
        "div",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "meter",
    }
    assert not tags.attributes & {"onerror", "src", "href", "onclick"}
    assert "default-src 'none'" in made
    assert "\u202e" not in made
    assert "\x1b" not in made
    assert "1 of 3 tasks have no result yet" in made


def test_report_counts_by_model_and_failed_as_not_passed() -> None:
    def result(
        task: str, model: str, passed: bool | None, ok: bool = True, cost: float | None = None
    ) -> dict[str, Any]:
        return {
            "task": task,
            "name": task,
            "model": model,
            "ok": ok,
            "passed": passed,
            "seconds": 2.0,
            "calls": 1,
            "cost": cost,
        }

    report = RunReport.of(
        [result("a", "x", True, cost=0.5), result("b", "x", False), result("c", "y", False, ok=False)], 3
    )
    assert [(each.name, each.rate, each.failed, each.cost) for each in report.by_model] == [
        ("x", "50 %", 0, 0.5),
        ("y", "0 %", 1, None),
    ]
    assert report.total.rate == "33 %"
