"""Replays hostile logs and trees: a replay reports what is wrong with them and leaves no file behind."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from support.command_line import handrail

from handrail.kernel.host.scratch import CopyTooLarge, scratch_copy
from handrail.model.limits import MIB, Limits
from handrail.replay import read_log, replay

REQUEST = {"event": "request", "session": "s", "call": 1, "dialect": "file", "tool": "file.list", "params": {}}
RESPONSE = {"event": "response", "session": "s", "call": 1, "result": {}}
DEEP = '{"a":' * 900 + "1" + "}" * 900
ANYTHING: list[Any] = [None, 7, "x", [], {}, [[]], {"a": 1}, True]
ERRORS: list[Any] = [*ANYTHING, {"error": "x"}, {"error": []}, {"error": 7}]
ROOTS: list[Any] = [*ANYTHING, "", "/", "a"]
ODD: list[dict[str, Any]] = [
    *({**REQUEST, name: value} for name in REQUEST for value in ANYTHING),
    *({**RESPONSE, "result": value} for value in ERRORS),
    *({**REQUEST, "root": value} for value in ROOTS),
    {**REQUEST, "params": {"path": "\ud800"}},
    {**REQUEST, "shortened": []},
]


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory in which a replay makes its copies."""
    place = tmp_path / "room"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.mark.parametrize("line", [pytest.param(each, id=f"{number}") for number, each in enumerate(ODD)])
def test_replay_of_log_with_odd_line_raises_nothing(root: Path, line: dict[str, Any]) -> None:
    log = read_log("\n".join(json.dumps(each) for each in (REQUEST, line, RESPONSE)))
    outcomes = [*replay(log, str(root), None)]
    assert len(outcomes) == len(log.calls)
    assert log.unread + len(log.calls) in (1, 2)


@pytest.mark.parametrize("text", [DEEP, "[" * 100_000, json.dumps(REQUEST).replace("{}", DEEP), "1" * 10_000])
def test_log_line_that_is_too_deep_or_too_long_is_counted_as_unread(text: str) -> None:
    log = read_log(text)
    assert (log.calls, log.unread) == ([], 1)


def test_replay_with_overlapping_roots_does_not_grow_parameters(root: Path) -> None:
    pairs = {str(root)[at : at + 2] for at in range(len(str(root)) - 1)}
    lines = [{**REQUEST, "call": number, "root": pair} for number, pair in enumerate(sorted(pairs))]
    lines.append({**REQUEST, "call": 99, "tool": "file.read", "params": {"path": "".join(pairs)}})
    lines.append({**RESPONSE, "call": 99, "result": {"output": "".join(pairs)}})
    log = read_log("\n".join(map(json.dumps, lines)))
    *_, last = replay(log, str(root), None)
    assert len(str(last.differences)) < 100 * len(str(root)) * len(pairs)


def test_log_roots_beyond_one_hundred_are_counted_as_unread() -> None:
    log = read_log("\n".join(json.dumps({**REQUEST, "root": f"/root{number}"}) for number in range(300)))
    assert (len(log.roots), log.unread) == (100, 200)


def test_replay_command_reports_malformed_or_too_large_log(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(json.dumps({**REQUEST, "session": []}) + "\n" + DEEP)
    done = handrail("replay", str(log), "--root", str(root))
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    os.truncate(log, Limits().replay_log_bytes + 1)
    done = handrail("replay", str(log), "--root", str(root))
    assert f"cannot read {log}: it is larger than {256 * MIB} bytes" in done.stderr


def test_replay_of_pipe_without_writer_does_not_wait(root: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    done = handrail("replay", str(tmp_path / "log"), "--root", str(root))
    assert (done.returncode, "contains no calls" in done.stderr) == (2, True)


def test_replay_of_log_through_pipe_reads_all_of_it(root: Path) -> None:
    words = [sys.executable, "-P", "-m", "handrail", "replay", "/dev/stdin", "--root", str(root)]
    done = subprocess.run(words, input=json.dumps(REQUEST), capture_output=True, text=True, check=False)
    assert (done.returncode, "1 calls" in done.stdout) == (0, True), done


def test_scratch_copy_keeps_sparse_file_sparse(root: Path, room: Path) -> None:
    with (root / "sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(60 << 30)
        file.write(b"end")
    with scratch_copy(str(root), 10 * MIB) as copy:
        made = os.stat(f"{copy}/sparse")
        assert (made.st_size, made.st_blocks * 512 < MIB) == ((60 << 30) + 3, True)
        with open(f"{copy}/sparse", "rb") as file:
            assert file.read(6) == b"begin\0"
            file.seek(60 << 30)
            assert file.read() == b"end"
    assert [*room.iterdir()] == []


@pytest.mark.parametrize("count", [1, 600])
def test_scratch_copy_of_tree_beyond_limit_is_refused(root: Path, room: Path, count: int) -> None:
    for number in range(count):
        (root / f"{number}").write_bytes(b"x" * (2 * MIB // count))
    with pytest.raises(CopyTooLarge, match="more than 1048576 bytes"), scratch_copy(str(root), MIB):
        pass
    assert [*room.iterdir()] == []


def test_scratch_copy_drops_set_id_bits_and_fifos(root: Path, room: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "program").write_text("x")
    (root / "program").chmod(0o6755)
    with scratch_copy(str(root), MIB) as copy:
        assert os.listdir(copy) == ["program"]
        assert os.stat(f"{copy}/program").st_mode & 0o7777 == 0o755
    assert [*room.iterdir()] == []


COPYING = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the process that runs the tests may ignore it
from handrail.kernel.host.scratch import scratch_copy
with scratch_copy(sys.argv[1], 1 << 30) as copy:
    print(copy, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_killed_replay_leaves_no_copy(root: Path, room: Path, ending: signal.Signals) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "file").write_text("x")
    argv = [sys.executable, "-c", COPYING, str(root)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as replaying:
        assert replaying.stdout is not None
        copy = Path(replaying.stdout.readline().rstrip("\n"))
        assert (copy / "sub" / "file").exists()
        (copy / "sub").chmod(0)
        children = Path(f"/proc/{replaying.pid}/task/{replaying.pid}/children").read_text().split()
        remover = os.pidfd_open(int(children[0]))
        replaying.send_signal(ending)
        replaying.wait()
    poll = select.poll()
    poll.register(remover, select.POLLIN)
    assert poll.poll(60_000)
    os.close(remover)
    assert [*room.iterdir()] == []
    assert [*(Path(os.environ["HANDRAIL_STATE_DIR"]) / "workspaces").iterdir()] == []
