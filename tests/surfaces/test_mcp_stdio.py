"""Tests the server on a pipe: after any input it keeps running and reports errors."""

import contextlib
import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.mcp_client import command
from support.pseudo_terminal import Terminal

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Raw:
    """Writes any bytes to the server."""

    def __init__(self, root: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            command("--root", root, *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self.input, self.output, self.errors = self.process.stdin, self.process.stdout, self.process.stderr

    def write(self, data: bytes) -> None:
        self.input.write(data)
        self.input.flush()

    def send(self, message: Any) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def answer(self) -> Any:
        return json.loads(self.output.readline())

    def shake_hands(self) -> "Raw":
        self.send(HELLO)
        assert self.answer()["result"]["protocolVersion"] == "2025-11-25"
        self.send(READY)
        return self

    def is_up(self) -> bool:
        self.send({"jsonrpc": "2.0", "id": "up?", "method": "tools/list"})
        answer = self.answer()
        return bool(answer["id"] == "up?" and answer["result"]["tools"])

    def close(self) -> tuple[int, str]:
        """Return the exit status and the standard error of the server."""
        self.input.close()
        assert self.output.read() == b""
        said = self.errors.read().decode()
        return self.process.wait(300), said


@pytest.fixture
def raw(root: Path) -> Iterator[Raw]:
    client = Raw(root, "--approve", "auto").shake_hands()
    yield client
    client.process.kill()
    for stream in (client.input, client.output, client.errors):
        stream.close()
    client.process.wait()


@pytest.mark.parametrize(
    ("line", "code", "why"),
    [
        (b"nonsense\n", -32700, "The line is not valid JSON"),
        (b'{"jsonrpc": "2.0", "id": 1, "method"\n', -32700, "The line is not valid JSON"),
        (b'\xff\xfe{"jsonrpc"}\n', -32700, "The line is not valid JSON"),
        (b"[" * 100_000 + b"\n", -32700, "The line is not valid JSON"),
        (b"[]\n", -32600, "The line is not a JSON-RPC message"),
        (b'{"jsonrpc": "1.0", "id": 7}\n', -32600, "The line is not a JSON-RPC message"),
    ],
)
def test_stdio_malformed_line_is_answered_and_logged(raw: Raw, line: bytes, code: int, why: str) -> None:
    raw.write(line)
    answer = raw.answer()
    assert answer["error"]["code"] == code
    assert answer["error"]["message"].startswith(why)
    assert answer["id"] == (7 if b"7" in line else None)
    assert raw.is_up()
    status, said = raw.close()
    assert (status, why in said) == (0, True)


def test_stdio_huge_message_is_refused_without_memory(raw: Raw) -> None:
    raw.write(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "file.write", "arguments": "')
    for _ in range(100):
        raw.write(b"x" * 1_000_000)
    raw.write(b'"}}\n')
    assert raw.answer()["error"]["message"] == "The message is longer than 33554432 bytes"
    assert _peak_kib(raw) < 250_000
    assert raw.is_up()


def test_stdio_message_in_pieces_is_joined(raw: Raw) -> None:
    for byte in json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n":
        raw.write(bytes([byte]))
    assert raw.answer() == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_stdio_unknown_method_and_bad_params_are_protocol_errors(raw: Raw) -> None:
    raw.send({"jsonrpc": "2.0", "id": 1, "method": "no/such"})
    assert raw.answer()["error"]["code"] == -32601
    raw.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "file.read", "arguments": "x"}})
    assert raw.answer()["error"]["code"] == -32602
    raw.send({"jsonrpc": "2.0", "method": "notifications/unheard-of"})
    assert raw.is_up()


def test_stdio_lone_surrogate_is_refused(raw: Raw) -> None:
    arguments = '{"path": "\\ud800"}'
    raw.write(
        f'{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"file.read","arguments":{arguments}}}}}\n'.encode()
    )
    answer = raw.answer()
    assert (answer["id"], answer["error"]["code"]) == (5, -32600)
    assert raw.is_up()


def test_stdio_half_message_at_end_is_answered(raw: Raw) -> None:
    raw.write(b'{"jsonrpc": "2.0", "id": 1, "meth')
    raw.input.close()
    assert raw.answer()["error"]["code"] == -32700
    assert raw.process.wait(300) == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_stdio_signal_ends_server_with_status_0(raw: Raw, how: signal.Signals) -> None:
    raw.process.send_signal(how)
    assert raw.process.wait(300) == 0


def test_stdio_server_ends_when_client_is_killed(root: Path) -> None:
    """Kill a client process with SIGKILL while the server waits for it."""
    reader, writer = os.pipe()
    program = (
        "import subprocess, sys, time\n"
        f"p = subprocess.Popen({command('--root', root)!r}, stdin=subprocess.PIPE, pass_fds=[{writer}])\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        ["python3", "-c", program], stdout=subprocess.PIPE, pass_fds=[writer], start_new_session=True
    ) as client:
        os.close(writer)
        assert client.stdout
        assert int(client.stdout.readline())
        client.kill()
        # Client and server hold the write end: the read ends when both are gone.
        assert os.read(reader, 1) == b""
    os.close(reader)


def test_stdio_client_not_reading_does_not_block_shutdown(root: Path) -> None:
    client = Raw(root).shake_hands()
    for number in range(3000):
        client.send({"jsonrpc": "2.0", "id": number, "method": "tools/list"})
        if number % 500 == 0 and client.process.poll() is not None:
            break
    client.process.terminate()
    assert client.process.wait(300) == 0
    for stream in (client.input, client.output, client.errors):
        stream.close()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--tools", "nope"], "unknown tool nope: the file dialect does not have it"),
        (["--root", "/no/such/place"], "cannot open the workspace /no/such/place"),
        (["--http", "nowhere"], "expected HOST:PORT, not 'nowhere'"),
        (["--http", "0.0.0.0:0", "--no-token"], "0.0.0.0 is not a loopback address: the server needs a bearer token"),
        (["--token-file", "/no/such/file"], "no token found in /no/such/file"),
    ],
)
def test_mcp_bad_arguments_are_reported_at_start(root: Path, arguments: list[str], why: str) -> None:
    out = subprocess.run(command("--root", root, *arguments), capture_output=True, text=True, input="", check=False)
    assert (out.returncode, out.stdout) == (2, "")
    assert why in out.stderr


def test_mcp_started_in_terminal_explains_itself(root: Path) -> None:
    with Terminal(*command("--root", root)) as terminal:
        shown = terminal.until("handrail config")
        assert "waiting for an MCP client" in shown
        terminal.send("\x04")
        status, out, _ = terminal.finish()
    assert (status, out) == (0, "")


def _peak_kib(raw: Raw) -> int:
    status = Path(f"/proc/{raw.process.pid}/status").read_text().split("\n")
    return int(next(line for line in status if "VmHWM" in line).split()[1])


@pytest.fixture
def small_messages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let the next server keep few bytes of messages that wait."""
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "config.toml").write_text("[limits]\nmessage_bytes = 100_000\n")
    monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(tmp_path / "settings"))


def _request(number: int) -> dict[str, Any]:
    if number % 20:
        return {"jsonrpc": "2.0", "id": number, "method": ("ping", "tools/list")[number % 2]}
    params = {"name": "file.read", "arguments": {"path": "a.txt"}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def test_stdio_ten_thousand_requests_at_once_are_all_answered(raw: Raw, root: Path) -> None:
    (root / "a.txt").write_text("one\n")
    raw.write(b"".join(json.dumps(_request(number)).encode() + b"\n" for number in range(10_000)))
    answers = [raw.answer() for _ in range(10_000)]
    assert sorted(answer["id"] for answer in answers) == [*range(10_000)]
    assert all("result" in answer for answer in answers)
    assert _peak_kib(raw) < 250_000


@pytest.mark.usefixtures("small_messages")
def test_stdio_client_not_reading_is_held_up_then_answered(root: Path) -> None:
    client = Raw(root).shake_hands()
    pipe, sent = client.input.fileno(), 0
    os.set_blocking(pipe, False)
    lines = b"".join(
        json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/list"}).encode() + b"\n" for n in range(9999)
    )
    while sent < len(lines) and select.select([], [pipe], [], 2)[1]:
        sent += os.write(pipe, lines[sent : sent + 4096])
    assert sent < len(lines), "the server took all requests although the client read no answer"
    assert _peak_kib(client) < 100_000
    for number in range(lines.count(b"\n", 0, sent)):
        assert "result" in client.answer(), number
    client.process.kill()
    client.process.wait()
    for stream in (client.output, client.errors):
        stream.close()
    with contextlib.suppress(BrokenPipeError):
        client.input.close()


def test_stdio_server_ends_when_client_closes_output(raw: Raw) -> None:
    raw.output.close()
    raw.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert raw.process.wait(300) == 0


def test_stdio_call_in_work_is_answered_when_client_closes_input(root: Path) -> None:
    client = Raw(root, "--dialect", "codex", "--approve", "auto", "--sandbox", "off").shake_hands()
    started = {"name": "shell", "arguments": {"command": "touch started; sleep 600"}}
    client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": started})
    while not (root / "started").exists():
        assert client.process.poll() is None
    client.input.close()
    assert client.answer() == {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "Connection closed"}}
    assert client.process.wait(300) == 0
    client.output.close()
    client.errors.close()


def test_stdio_server_loads_no_sdk(root: Path) -> None:
    """List the tools and read a file: the server imports nothing of the SDK, whose import takes most of its start."""
    (root / "a.txt").write_text("one\n")
    lines = [HELLO, READY, _request(1), _request(20)]
    program, *rest = command("--root", root)
    done = subprocess.run(
        [program, "-X", "importtime", *rest],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.split("\n") if line.startswith("import time:")}
    assert "handrail.surfaces.mcp.stdio" in loaded
    assert loaded & {"mcp", "mcp_types", "pydantic", "asyncio", "anyio", "click", "logging"} == set()
