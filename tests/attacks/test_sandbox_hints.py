"""Checks which commands are told that the sandbox refused something, in every way in which a command can run.

The ways: a command on its own (`codex` and `bash`), a shell that remembers (`claude`), a job (`codex-2026`, `gemini-3`)
and a terminal (`codex`).
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from handrail import ToolResult, ToolRouter, Workspace

pytestmark = pytest.mark.sandbox

SENTENCES = {
    "network": "the sandbox blocks the network",
    "noted": "the command succeeded, but a part of it tried to reach the network",
    "outside": "the sandbox blocks writes outside the workspace",
    "guarded": "the sandbox blocks this change",
    "config": "the sandbox blocks changes of git's configuration",
    "packages": "the sandbox has no package manager",
    "author": "no author for the commit",
}
CONNECT = "exec 3<>/dev/tcp/192.0.2.1/80"
CAUGHT = "import socket\\ntry: socket.create_connection((\\'192.0.2.1\\', 80))\\nexcept OSError: pass"
COMMANDS: list[tuple[str, str]] = [
    # no network
    ("curl -s https://example.org", "network"),
    ("curl -s https://example.org | cat", "network"),
    ("curl -s https://example.org 2>/dev/null || true", "network"),
    ("curl -s https://example.org -o page; echo done", "network"),
    ("curl -sf https://example.org > page && echo done", "network"),
    ('page=$(curl -s https://example.org); echo "$page"', "network"),
    ("if curl -s https://example.org; then echo yes; else echo no; fi", "network"),
    (f"({CONNECT}) 2>/dev/null", "network"),
    (f"({CONNECT}) 2>/dev/null; true", "network"),
    ("getent hosts example.org | sort", "network"),
    ("git ls-remote https://example.org/x.git 2>&1 | tail -1", "network"),
    ("git clone -q https://example.org/x.git y || echo cannot", "network"),
    (f"python3 -c $'{CAUGHT}'", "noted"),
    (f"printf '{CONNECT.replace('exec 3<>', ': <')}' > fetch.sh; true", ""),
    ("bash fetch.sh 2>/dev/null || true", "network"),
    # read-only places
    ("touch /usr/x", "outside"),
    ("touch /usr/x 2>/dev/null", "outside"),
    ("touch /usr/x 2>/dev/null || true", "outside"),
    ("touch /usr/x || true", "outside"),
    ("touch /usr/x 2>&1 | head -1", "outside"),
    ("mkdir -p /opt/x/y &>/dev/null; true", "outside"),
    ("cp file /usr/local/bin/ >/dev/null 2>&1", "outside"),
    ("echo x > /etc/x", "outside"),
    ("python3 -c \"open('/usr/x', 'w')\"", "outside"),
    ("python3 -c \"open('/usr/x', 'w')\" 2>&1 | tail -1", "outside"),
    # guarded names
    ("echo x > .git/hooks/pre-commit", "guarded"),
    ("echo x 2>/dev/null > .git/hooks/pre-commit || true", "guarded"),
    ("touch .vscode/settings.json 2>/dev/null", "guarded"),
    ("rm -rf .git/hooks", "guarded"),
    ("git config core.pager less", "config"),
    ("git config core.pager less || true", "config"),
    ("git config core.pager less 2>/dev/null; echo done", "config"),
    ("git remote add origin ../x && echo added", "config"),
    # a package manager of the system
    ("apt-get update 2>&1 | tail -1", "packages"),
    # nothing was refused
    ("true", ""),
    ("false", ""),
    ("grep -r nothing .", ""),
    ("ls missing 2>/dev/null", ""),
    ("rm missing 2>/dev/null || true", ""),
    ("git config core.pager 2>/dev/null || true", ""),
    ("git config --global alias.x status && git x", ""),
    ("cp /usr/share/missing . 2>/dev/null", ""),
    ("touch /tmp/x ~/x 2>/dev/null; cat missing", ""),
    ("echo \"touch: cannot touch '/usr/x': Read-only file system\"", ""),
    ("cat log", ""),
    ("python3 -c 'import sys; sys.exit(3)'", ""),
    ("(exec 3<>/dev/tcp/127.0.0.1/9) 2>/dev/null", ""),
    ("echo more >> file && git commit -qam more", ""),
    # package managers of languages
    ("python3 -m pip download -q --retries 0 missing-package", "network"),
    ("python3 -m pip download -q --retries 0 missing-package 2>/dev/null | tail -1", "network"),
    ("npm view missing-package --fetch-retries=0 2>/dev/null | cat", "network"),
]
WAYS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "codex": ("shell", "command", {"timeout_ms": 60_000}),
    "bash": ("bash", "command", {}),
    "claude": ("bash", "command", {}),
    "codex-2026": ("exec_command", "cmd", {"yield_time_ms": 30_000}),
    "gemini-3": ("run_shell_command", "command", {}),
}


@pytest.fixture
def repository(root: Path) -> Path:
    (root / "file").write_text("text\n")
    (root / "log").write_text("connect: Network is unreachable\ntouch: '/usr/x': Read-only file system\n")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        subprocess.run((*git, *words), cwd=root, check=True)
    with (root / ".git/config").open("a") as config:
        config.write("[user]\n\tname = a\n\temail = a@b\n")
    return root


def told(result: ToolResult) -> str:
    """Return what an answer says that the sandbox refused."""
    return " ".join(kind for kind, said in SENTENCES.items() if any(said in each for each in result.warnings))


@pytest.mark.slow
@pytest.mark.parametrize("dialect", WAYS)
def test_commands_are_told_what_the_sandbox_refused(repository: Path, dialect: str) -> None:
    tool, name, more = WAYS[dialect]
    expected = {command: refused for command, refused in COMMANDS if _is_installed(command)}
    with Workspace(str(repository), approve="auto", allow_reduced=False, tell=lambda _: None) as workspace:
        answers = {each: workspace.call(dialect, tool, {name: each, **more}) for each in expected}
    assert {command: told(result) for command, result in answers.items()} == expected


def _is_installed(command: str) -> bool:
    if "-m pip" in command:
        return subprocess.run(("python3", "-m", "pip", "--version"), capture_output=True, check=False).returncode == 0
    program = command.split(maxsplit=1)[0]
    return program not in ("npm", "apt-get", "getent", "curl") or shutil.which(program) is not None


def test_pip_that_finds_package_installed_tries_no_network(repository: Path) -> None:
    with Workspace(str(repository), approve="auto", tell=lambda _: None) as workspace:
        result = workspace.call("codex", "shell", {"command": "python3 -m pip install pip"})
    assert not [each for each in result.warnings if "network" in each], result.text


@pytest.mark.parametrize(
    ("command", "refused"),
    [
        ("curl -s https://example.org | cat", "network"),
        ("touch /usr/x 2>/dev/null", "outside"),
        ("git config a.b c 2>/dev/null", "config"),
        ("cat file", ""),
    ],
)
def test_terminal_is_told_what_the_sandbox_refused(repository: Path, command: str, refused: str) -> None:
    with Workspace(str(repository), approve="auto", tell=lambda _: None) as workspace:
        tools = workspace.tools("codex")
        own = tools.call("exec_command", {"session_id": "own", "cmd": f"{command}; echo o''ver"})
        assert _until_over(tools, "own", own) == refused
        assert tools.call("exec_command", {"session_id": "shell", "cmd": "PS1= bash --norc -i; true"}).success
        typed = tools.call("write_stdin", {"session_id": "shell", "chars": f"{command}; echo o''ver\n"})
        assert _until_over(tools, "shell", typed) == refused


def _until_over(tools: ToolRouter, session: str, result: ToolResult) -> str:
    """Read a terminal until the command is over; return what the answers said that the sandbox refused."""
    said = told(result)
    while "over" not in result.text:
        result = tools.call("write_stdin", {"session_id": session, "chars": ""})
        said += told(result)
    return said


def test_network_is_known_beside_a_quiet_process_of_the_session(repository: Path) -> None:
    with Workspace(str(repository), approve="auto", tell=lambda _: None) as workspace:
        tools = workspace.tools("codex")
        assert tools.call("shell", {"command": "sleep 600 & echo started"}).success
        assert told(tools.call("shell", {"command": "echo Network is unreachable >&2; exit 6"})) == ""
        assert (
            told(tools.call("shell", {"command": "cat log >&2; (exec 3<>/dev/tcp/192.0.2.1/80)"})) == "network outside"
        )
