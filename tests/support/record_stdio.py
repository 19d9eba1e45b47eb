"""Starts an MCP server and passes its messages on, while it records them: `record_stdio.py LOG COMMAND…`.

Each line of the log is one message, with the side that sent it and the process that received or sent it; the first line
of a process has its arguments.
"""

import json
import subprocess
import sys
from threading import Lock, Thread
from typing import IO, Any


def record(log: IO[str], command: list[str]) -> int:
    """Run a server until its client closes the connection; return its exit code."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin
    assert child.stdout
    lock = Lock()

    def note(side: str, message: Any) -> None:
        with lock:
            log.write(json.dumps({"process": child.pid, "from": side, "message": message}) + "\n")
            log.flush()

    def pump(side: str, source: IO[bytes], sink: IO[bytes]) -> None:
        for line in source:
            note(side, json.loads(line))
            sink.write(line)
            sink.flush()
        sink.close()

    note("start", command[1:])
    back = Thread(target=pump, args=("server", child.stdout, sys.stdout.buffer), daemon=True)
    back.start()
    pump("client", sys.stdin.buffer, child.stdin)
    return child.wait()


if __name__ == "__main__":
    with open(sys.argv[1], "a", encoding="utf-8") as opened:
        sys.exit(record(opened, sys.argv[2:]))
