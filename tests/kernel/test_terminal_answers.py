"""Tests that terminals answer the queries of programs, so that a program which waits for the answer goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sandboxes import PYTHON, workspace

from handrail.kernel.process.jobs import Jobs, JobStart
from handrail.kernel.process.runner import Processes
from handrail.kernel.process.terminal_answers import TerminalAnswers
from handrail.kernel.process.terminals import Terminals

PATIENCE = 300
ASKS = (
    "import os, sys, tty\ntty.setraw(0)\nos.write(1, b'12345' + eval(sys.argv[1]))\ndata = b''\n"
    "while not data.endswith(eval(sys.argv[2])): data += os.read(0, 1)\n"
    "os.write(1, b'answer ' + repr(data).encode() + b'\\r\\n')"
)
QUERIES = {
    "cursor": (b"\x1b[6n", b"\x1b[1;6R"),
    "status": (b"\x1b[5n", b"\x1b[0n"),
    "attributes": (b"\x1b[c", b"\x1b[?1;2c"),
    "attributes, long": (b"\x1b[0c", b"\x1b[?1;2c"),
    "version": (b"\x1b[>c", b"\x1b[>0;0;0c"),
    "background colour": (b"\x1b]11;?\x1b\\", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
    "foreground colour": (b"\x1b]10;?\x07", b"\x1b]10;rgb:cccc/cccc/cccc\x1b\\"),
    "keyboard": (b"\x1b[?u", b"\x1b[?0u"),
    "mode of synchronised output": (b"\x1b[?2026$p", b"\x1b[?2026;0$y"),
    "mode of bracketed paste": (b"\x1b[?2004$p", b"\x1b[?2004;0$y"),
    "cursor, extended": (b"\x1b[?6n", b"\x1b[?1;6R"),
    "name": (b"\x1b[>q", b"\x1bP>|handrail\x1b\\"),
    "rows and columns": (b"\x1b[18t", b"\x1b[8;24;80t"),
    "pixels": (b"\x1b[14t", b"\x1b[4;384;640t"),
    "pixels of a character": (b"\x1b[16t", b"\x1b[6;16;8t"),
}


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with workspace(tmp_path / "ws") as opened:
        yield opened


def asking(query: bytes, answer: bytes) -> list[str]:
    return [PYTHON, "-I", "-c", ASKS, repr(query), repr(answer[-1:])]


@pytest.mark.sandbox
@pytest.mark.parametrize(("query", "answer"), QUERIES.values(), ids=list(QUERIES))
def test_program_that_asks_and_waits_gets_answer(processes: Processes, query: bytes, answer: bytes) -> None:
    terminals = Terminals(processes.sandbox)
    shown = terminals.start("t", asking(query, answer)).read(PATIENCE, 0.1, b"answer b").data
    assert f"answer {answer!r}".encode() in shown
    terminals.close()


@pytest.mark.sandbox
def test_job_with_terminal_gets_answer(processes: Processes) -> None:
    query, answer = QUERIES["cursor"]
    jobs = Jobs(processes)
    reading = jobs.start(JobStart("ask", asking(query, answer), size=(24, 80))).read(PATIENCE)
    assert f"answer {answer!r}".encode() in reading.stdout.head
    jobs.close()


@pytest.mark.parametrize(("query", "answer"), QUERIES.values(), ids=list(QUERIES))
def test_query_in_any_pieces_is_answered_once(query: bytes, answer: bytes) -> None:
    text = b"12345" + query + b"after"
    for cut in range(len(text) + 1):
        said: list[bytes] = []
        answers = TerminalAnswers((24, 80), said.append)
        for piece in (text[:cut], text[cut:]):
            answers.take(piece)
        assert said == [answer], cut


def test_text_without_query_gets_no_answer_and_moves_cursor() -> None:
    said: list[bytes] = []
    answers = TerminalAnswers((24, 80), said.append)
    answers.take(b"one\r\n\x1b[1mtwo\x1b[0m\x1b]0;title\x07\x1b[?25l" + b"x" * 80)
    assert said == []
    answers.take(b"\x1b[6n\x1b[5;7H\x1b[6n")
    assert said == [b"\x1b[3;4R", b"\x1b[5;7R"]


def test_endless_unfinished_sequence_is_not_kept() -> None:
    answers = TerminalAnswers((24, 80), lambda _: None)
    for _ in range(100):
        answers.take(b"\x1b]" + b"x" * 10_000)
    assert len(answers._rest) < 1000
