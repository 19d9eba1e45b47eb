"""Replays what real clients sent (`make test-clients` records it) against the server, and compares its answers."""

import json
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from clients.recording import PROJECT, RECORDED, essence, moved

RECORDINGS = sorted(each.stem for each in RECORDED.glob("*.jsonl"))


class Replay:
    """Plays a client: sends its messages, with the ids and states that this server gave."""

    def __init__(self, arguments: list[str], root: Path) -> None:
        argv = [sys.executable, "-P", "-m", "handrail", *arguments]
        self._server = subprocess.Popen(argv, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._state, self._asked = "", None
        self._early: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        if "method" not in message:  # the answer to a question of the server
            message = {**message, "id": self._asked}
        if "requestState" in message.get("params", {}):
            message = {**message, "params": {**message["params"], "requestState": self._state}}
        assert self._server.stdin
        self._server.stdin.write(json.dumps(message) + "\n")
        self._server.stdin.flush()

    def receive(self, expected: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to the same request, or the next question; the server may answer in any order."""

        def fits(message: dict[str, Any]) -> bool:
            if "method" in expected or "method" in message:
                return message.get("method") == expected.get("method")
            return bool(message["id"] == expected["id"])

        while not (found := [each for each in self._early if fits(each)]):
            self._early.append(self._read())
        self._early.remove(found[0])
        return found[0]

    def _read(self) -> dict[str, Any]:
        assert self._server.stdout
        message: dict[str, Any] = json.loads(self._server.stdout.readline() or "null")
        assert message, "the server ended"
        if "id" in message and "method" in message:
            self._asked = message["id"]
        self._state = message.get("result", {}).get("requestState", self._state)
        return message

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.communicate()  # closes its input, which ends it


def test_recordings_of_five_clients_exist() -> None:
    assert {name.partition("_")[0] for name in RECORDINGS} == {"claude", "codex", "gemini", "opencode", "qwen"}


@pytest.mark.parametrize("name", RECORDINGS)
def test_recorded_exchange_gets_same_answers(
    name: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings"
    settings.mkdir()
    quickest = 600 if "no_user" in name else 0  # the replay is quick, the user of the recording was not
    (settings / "config.toml").write_text(f"[limits]\nquickest_answer_seconds = {quickest}\n")
    monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(settings))
    (root / "notes.txt").write_text("first line\n")
    lines = [json.loads(line) for line in (RECORDED / f"{name}.jsonl").read_text().splitlines()]
    for _, exchange in groupby(lines, lambda line: line["process"]):
        _replay(root, [*exchange])
    assert ((root / "notes.txt").read_text() == "changed\n") is ("approved" in name)


def _replay(root: Path, lines: list[dict[str, Any]]) -> None:
    start, *rest = lines
    with Replay(start["message"], root) as client:
        for line in rest:
            if line["from"] == "client":
                client.send(moved(line["message"], PROJECT, str(root)))
            else:
                expected = line["message"]
                got = moved(essence(client.receive(expected)), root)
                assert {**got, "id": expected["id"]} == expected
