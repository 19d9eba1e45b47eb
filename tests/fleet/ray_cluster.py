"""Starts real Ray nodes on one machine, each with an address of its own on the loopback, and kills parts of them."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

RAY = Path(sys.executable).parent / "ray"
PORT = 26379
STORE_BYTES = 80_000_000


class RayCluster:
    """A head without processors, and nodes."""

    def __init__(self, place: Path, *, token: bool = True, port: int = PORT) -> None:
        self.place = place
        self.variables = {
            **{name: each for name, each in os.environ.items() if not name.startswith("RAY_")},
            **({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)} if token else {}),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TMPDIR": str(place),
            "RAY_enable_infeasible_task_early_exit": "true",
            "PYTHONPATH": str(Path(__file__).parent.parent),
        }
        self.address = f"127.0.0.1:{port}"
        self.head = self._start("127.0.0.1", "--head", f"--port={port}", "--num-cpus=0", "--include-dashboard=false")
        self.nodes: dict[str, int] = {}

    def _start(self, ip: str, *options: str) -> int:
        """Run `ray start`; return the process of its raylet."""
        argv = [str(RAY), "start", f"--node-ip-address={ip}", f"--object-store-memory={STORE_BYTES}", *options]
        said = subprocess.run(
            [*argv, "--disable-usage-stats", *([f"--temp-dir={self.place}"] if "--head" in options else [])],
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert said.returncode == 0, said.stdout + said.stderr
        return next(pid for pid, line in processes() if "/raylet/raylet" in line and f"--node_ip_address={ip} " in line)

    def add(self, number: int, cpus: int = 4) -> str:
        """Start a node; return its address."""
        ip = f"127.0.0.{number + 1}"
        self.nodes[ip] = self._start(ip, f"--address={self.address}", f"--num-cpus={cpus}")
        return ip

    def kill_node(self, ip: str) -> None:
        """Kill every process of a node at once, also the hosts."""
        raylet = self.nodes.pop(ip)
        kill([raylet, *descendants(raylet)])

    def kill_raylet(self, ip: str) -> None:
        kill([self.nodes.pop(ip)])

    def kill_head(self) -> None:
        kill([pid for pid, line in processes() if "/gcs/gcs_server" in line and str(self.place) in line])

    def workers(self, ip: str) -> list[int]:
        """Return the worker processes of a node that have a host."""
        return [pid for pid in descendants(self.nodes[ip]) if any(is_host(child) for child in children(pid))]

    def hosts(self, ip: str | None = None) -> list[int]:
        """Return the hosts of a node, or of all."""
        tops = [self.nodes[ip]] if ip else [*self.nodes.values()]
        return [pid for top in tops for pid in descendants(top) if is_host(pid)]

    def close(self) -> None:
        """Kill everything that belongs to the cluster."""
        mine = [pid for pid, line in processes() if str(self.place) in line and pid != os.getpid()]
        tops = [*self.nodes.values(), self.head]
        kill([*mine, *tops, *(each for top in tops for each in descendants(top) if not is_host(each))])
        subprocess.run(["rm", "-rf", str(self.place)], check=False)  # its last processes may still write


def processes() -> Iterator[tuple[int, str]]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                yield (
                    int(name),
                    Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"),
                )
            except OSError:
                continue


def parents() -> dict[int, int]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    return found


def children(pid: int) -> list[int]:
    return [each for each, parent in parents().items() if parent == pid]


def descendants(pid: int) -> list[int]:
    known, found, waiting = parents(), [], [pid]
    while waiting:
        here = waiting.pop()
        below = [each for each, parent in known.items() if parent == here]
        found += below
        waiting += below
    return found


def is_host(pid: int) -> bool:
    try:
        return b"handrail.fleet.host\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def hosts_below(place: str) -> list[int]:
    """Return the hosts whose directories lie below a place: others on this machine belong to other fleets."""
    return [pid for pid, line in processes() if is_host(pid) and place in line]


def sandboxed_below(place: str) -> list[int]:
    """Return the processes in sandboxes of hosts whose directories lie below a place, also those that only begin.

    A process that begins still is bubblewrap: it has the handles and the mounts of its host.
    """
    others = [(pid, line) for pid, line in processes() if not is_host(pid)]
    return [pid for pid, line in others if place in mounts(pid) or ("/bwrap " in line and place in line + handles(pid))]


def mounts(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/mountinfo").read_text(errors="replace")
    except OSError:
        return ""


def handles(pid: int) -> str:
    try:
        return " ".join(os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return ""


def kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def until(what: object, seconds: float = 280) -> None:
    """Wait until a function returns something true. On a busy machine a node of Ray takes a minute to start."""
    ending = time.monotonic() + seconds
    while not what():  # type: ignore[operator]
        assert time.monotonic() < ending, "it did not happen"
        time.sleep(0.1)
