"""Runs the real command line, in a separate process or in this one."""

import json
import re
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from handrail.surfaces.cli.click_commands import main
from support.pseudo_terminal import Terminal

Done = subprocess.CompletedProcess[str]
USER = ("--scope", "user")
ARGV = [sys.executable, "-P", "-m", "handrail"]


def handrail(*arguments: str, stdin: str | bytes = "", cwd: Path | None = None) -> Done:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run([*ARGV, *arguments], input=data, capture_output=True, cwd=cwd, check=False)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def at_terminal(*arguments: str) -> Done:
    """Run the command at a terminal that shows standard error."""
    with Terminal(*ARGV, *arguments) as terminal:
        status, out, shown = terminal.finish()
    return subprocess.CompletedProcess([*ARGV, *arguments], status, out, shown)


def in_process(*arguments: str, stdin: str | bytes = "", cwd: Path | None = None) -> Done:
    """Run the command in this process, with streams in memory."""
    with chdir(cwd or "."):
        done = CliRunner().invoke(main, arguments, input=stdin, prog_name="handrail", catch_exceptions=False)
    return Done(arguments, done.exit_code, done.stdout_bytes.decode(), done.stderr_bytes.decode())


def timeless(text: str) -> str:
    """Replace the measured time, so that the text is the same on every machine."""
    return re.sub(r"Time: \d+(\.\d+)?ms", "Time: <time>", text)


def envelope(line: str) -> dict[str, Any]:
    """Parse one envelope; check and remove its execution time."""
    found: dict[str, Any] = json.loads(line)
    assert found.pop("execution_time_ms") >= 0
    return found


def usage_error(done: Done) -> str:
    """Return the message of a usage error."""
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr.partition("\n\n")[2].removeprefix("Error: ").removesuffix("\n")
