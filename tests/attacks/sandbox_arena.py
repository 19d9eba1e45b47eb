"""Builds the targets of the sandbox attacks: canaries of the tests, so that a successful attack harms nothing else."""

import contextlib
import os
import secrets
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from support.sandboxes import PYTHON, python, said, sh, workspace

from handrail.kernel.process.runner import CommandOutcome, Processes
from handrail.kernel.sandbox.sandbox import SandboxSettings

GUARDED = (
    ".git/hooks",
    ".git/config",
    ".git/info",
    ".git/modules",
    ".git/commondir",
    ".idea",
    ".vscode",
    ".mcp.json",
)


@dataclass
class Arena:
    base: Path
    processes: Processes
    secret: str
    victim: subprocess.Popen[bytes]
    listeners: dict[str, socket.socket] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.base / "ws"

    def attack(self, language: str, text: str, *, seconds: float = 120) -> CommandOutcome:
        given = {
            "HIDDEN": str(self.base / "hidden"),
            "SHOWN": str(self.base / "shown"),
            "PERSON": str(self.base / "home"),
            "VICTIM": str(self.victim.pid),
            "TESTER": str(os.getpid()),
            "PYTHON": PYTHON,
            "TCP": str(self.listeners["tcp"].getsockname()[1]),
            "TCP6": str(self.listeners["tcp6"].getsockname()[1]) if "tcp6" in self.listeners else "9",
            "UDP": str(self.listeners["udp"].getsockname()[1]),
            "UNIX": str(self.base / "hidden" / "socket"),
            "ABSTRACT": self.listeners["abstract"].getsockname()[1:].decode(),
        }
        run = sh if language == "sh" else python
        return run(self.processes, text, environment=given, timeout_seconds=seconds)

    def _victim_answers(self) -> bool:
        """Return whether the victim repeats a line. A killed process does not, even if it has not ended yet."""
        assert self.victim.stdin is not None
        assert self.victim.stdout is not None
        try:
            self.victim.stdin.write(b"?\n")
        except BrokenPipeError:
            return False
        return self.victim.stdout.readline() == b"?\n"

    def damage(self, before: dict[str, object], outcome: CommandOutcome) -> list[str]:
        """Return a line for each effect that the attack had outside the sandbox; an empty list means no effect."""
        text, after = said(outcome), self.state()
        found = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if self.secret in text:
            found.append("the secret was read")
        if "ESCAPED" in text:
            found.append("the attack says that it got out")
        ours, its = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (0, self.victim.pid))
        if its != ours or not self._victim_answers():
            found.append("a process outside was touched")
        return found + [f"{name} was reached" for name, listener in self.listeners.items() if _heard(listener)]

    def state(self) -> dict[str, object]:
        """Return content and metadata of each file outside, and of each guarded file inside."""
        places = [self.base / "hidden", self.base / "shown", self.base / "home"]
        files = [path for place in places for path in (place, *sorted(place.rglob("*")))]
        guarded = [self.root / name for name in GUARDED]
        files += [path for place in guarded for path in (place, *sorted(place.rglob("*")))]
        set_ids = [path for path in self.root.rglob("*") if path.lstat().st_mode & 0o6000 and not path.is_symlink()]
        return {
            **{str(path): _facts(path) for path in files if os.path.lexists(path)},
            ".git itself": (self.root / ".git").stat().st_ino,
            **{f"set-id {path}": True for path in set_ids},
        }


def _facts(path: Path) -> tuple[object, ...]:
    info = path.lstat()
    content = path.read_bytes() if path.is_file() else b""
    attributes = os.listxattr(path, follow_symlinks=False)
    times = (info.st_mtime_ns, info.st_ctime_ns) if path.is_file() else ()
    return (
        info.st_mode,
        info.st_uid,
        info.st_ino,
        info.st_nlink if path.is_file() else 0,
        times,
        content,
        *attributes,
    )


def _heard(listener: socket.socket) -> bool:
    listener.setblocking(False)
    try:
        if listener.type == socket.SOCK_DGRAM:
            return bool(listener.recv(100))
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def opened(base: Path, settings: SandboxSettings) -> Iterator[Arena]:
    secret = f"TOP-{secrets.token_hex(8)}"
    _furnish(base, secret)
    victim = subprocess.Popen(
        ["cat"], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"VICTIM_API_KEY": secret}, cwd="/"
    )
    variables = {**os.environ, "HOME": str(base / "home"), "MY_SETTING": "visible"}
    variables |= {"FAKE_API_KEY": secret, "AWS_SECRET_ACCESS_KEY": secret}
    variables |= {"DATABASE_URL": f"postgres://u:{secret}@h", "SSH_AUTH_SOCK": secret}
    with contextlib.ExitStack() as stack:
        stack.enter_context(victim)
        stack.callback(victim.kill)
        arena = Arena(base, stack.enter_context(workspace(base / "ws", settings, variables)), secret, victim)
        for name, listener in _listeners(base).items():
            arena.listeners[name] = stack.enter_context(listener)
        arena.processes.sandbox.start()
        yield arena


def _furnish(base: Path, secret: str) -> None:
    for name in ("hidden", "shown", "home/.ssh", "home/.aws", "home/.config", "ws", "other-project"):
        (base / name).mkdir(parents=True)
    for name in ("hidden/secret.txt", "home/.ssh/id_rsa", "home/.aws/credentials", "other-project/.env"):
        (base / name).write_text(secret)
    (base / "home/.bashrc").write_text("# mine\n")
    (base / "shown/data.txt").write_text("shown\n")
    repository = base / "ws"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (repository / ".git" / "modules").mkdir()
    (repository / ".idea").mkdir()
    (repository / ".idea" / "workspace.xml").write_text("<mine/>")
    (repository / "file.txt").write_text("one\n")
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "add", "file.txt"], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)


def _listeners(base: Path) -> dict[str, socket.socket]:
    found = {"tcp": socket.create_server(("127.0.0.1", 0))}
    with contextlib.suppress(OSError):  # a machine without IPv6
        found["tcp6"] = socket.create_server(("::1", 0), family=socket.AF_INET6)
    found["udp"] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    found["udp"].bind(("127.0.0.1", 0))
    for name, address in (
        ("unix", str(base / "hidden" / "socket")),
        ("abstract", f"\0handrail-{secrets.token_hex(4)}"),
    ):
        found[name] = socket.socket(socket.AF_UNIX)
        found[name].bind(address)
        found[name].listen()
    return found
