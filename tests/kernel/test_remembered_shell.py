"""Tests the shell that remembers: what it keeps, how it knows the end of a command, and how it ends."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.sandboxes import Level, cancelled_when_begun, gone, level_of, none_left, open_handles, workspace

from handrail.kernel.process.remembered_shell import RememberedShell, Shells
from handrail.kernel.process.runner import Processes
from handrail.model.faults import CommandNotStarted

pytestmark = pytest.mark.sandbox

PATIENCE = 300
Say = Callable[[str], str]


@pytest.fixture
def processes(tmp_path: Path, level: Level) -> Iterator[Processes]:
    with workspace(tmp_path / "ws", level_of(level, output_bytes=20_000)) as opened:
        yield opened


@pytest.fixture
def shells(processes: Processes) -> Iterator[Shells]:
    opened = Shells(processes)
    yield opened
    opened.close()


@pytest.fixture
def shell(shells: Shells) -> RememberedShell:
    return shells.get("main", merged=True)


@pytest.fixture
def say(shell: RememberedShell) -> Say:
    """Return a function that runs a command and returns what it printed."""

    def run(text: str) -> str:
        outcome = shell.run(text, PATIENCE)
        assert not outcome.timed_out
        return outcome.stdout.joined(b"[cut]").decode()

    return run


def test_shell_keeps_directory_variables_functions_and_options(
    say: Say, shell: RememberedShell, tmp_path: Path
) -> None:
    assert say("mkdir inner && cd inner && word='a b' && greet() { echo \"hello $1\"; } && shopt -s nullglob") == ""
    assert say('pwd; echo "$word"; greet you; echo *.none') == f"{tmp_path}/ws/inner\na b\nhello you\n\n"
    assert shell.directory == f"{tmp_path}/ws/inner"


def test_shell_has_empty_prompts_and_dumb_terminal(say: Say) -> None:
    assert say('echo "[$PS1][$PS2][$TERM]"; echo "$-"').startswith("[][][dumb]\n")


def test_shell_keeps_streams_apart_or_merged(shells: Shells) -> None:
    text = "echo out; echo err >&2"
    apart = shells.get("apart", merged=False).run(text, PATIENCE)
    assert (apart.stdout.head, apart.stderr.head) == (b"out\n", b"err\n")
    merged = shells.get("merged", merged=True).run(text, PATIENCE)
    assert (merged.stdout.head, merged.stderr.head) == (b"out\nerr\n", b"")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("true", 0),
        ("(exit 7)", 7),
        ("no-such-program-here", 127),
        ("echo 'unbalanced", 2),
        ("echo a; }", 2),
        ("if true; then", 2),
        ("cat <<END\nno end", 0),
        ("kill -9 $BASHPID & wait $!", 137),
        ("break; continue", 0),
        ("return 4", 2),
        ("trap 'echo debug' DEBUG; trap 'echo err' ERR; false", 1),
        ("set -x; set -v; (exit 5)", 5),
        ("exec 3>/dev/null; exec </dev/zero; (exit 6)", 6),
        ("printf() { :; }; eval() { :; }; (exit 8)", 8),
        ("# only a comment", 0),
        ("echo a \\", 0),
    ],
)
def test_command_of_any_form_ends_with_its_code(shell: RememberedShell, text: str, code: int) -> None:
    assert shell.run(text, PATIENCE).exit_code == code
    after = shell.run("trap - DEBUG ERR; set +xv; echo alive", PATIENCE)
    assert after.stdout.head.endswith(b"alive\n")
    assert shell.alive


@pytest.mark.parametrize(
    ("text", "code", "signal"),
    [
        ("exit 3", 3, None),
        ("exec true", 0, None),
        ("exec sh -c 'exit 4'", 4, None),
        ("set -e; false", 1, None),
        ("kill $$; sleep 100", None, "SIGTERM"),
        ("kill -9 $$; sleep 100", None, "SIGKILL"),
    ],
)
def test_end_of_shell_is_noticed_with_its_code(
    shell: RememberedShell, text: str, code: int | None, signal: str | None
) -> None:
    outcome = shell.run(f"echo before; {text}", PATIENCE)
    assert (outcome.exit_code, outcome.signal, outcome.timed_out) == (code, signal, False)
    assert outcome.stdout.head == b"before\n"
    assert not shell.alive
    assert shell.ending.why == "exited"


def test_command_that_closes_report_pipe_ends_shell(shell: RememberedShell) -> None:
    outcome = shell.run('for fd in /proc/$$/fd/*; do n=${fd##*/}; [ $n -gt 2 ] && eval "exec $n>&-"; done', PATIENCE)
    assert not outcome.timed_out
    assert not shell.alive


def test_input_of_command_is_empty(say: Say) -> None:
    assert say("cat; read line; echo $?; head -c 5") == "1\n"


def test_children_of_command_do_not_get_pipes_of_shell(say: Say) -> None:
    # 3 is the listing itself
    assert say("ls /proc/self/fd").split() == ["0", "1", "2", "3"]


def test_background_process_holds_output_and_command_ends(say: Say, shell: RememberedShell, marker: str) -> None:
    assert say(f"sleep {marker} & echo started") == "started\n"
    assert len(shell.children) == 1
    assert shell.busy
    assert say("kill %1; wait; echo done").endswith("done\n")
    assert not shell.busy


def test_timeout_ends_shell_and_everything_it_started(shell: RememberedShell, marker: str) -> None:
    outcome = shell.run(f"trap '' TERM; setsid sleep {marker} & echo partly; sleep {marker}", 0.5)
    assert outcome.timed_out
    assert outcome.stdout.head == b"partly\n"
    assert gone(marker)
    assert shell.ending.why == "timeout"


def test_cancelled_command_ends_shell_and_everything(shell: RememberedShell, marker: str) -> None:
    outcome = shell.run(f"sleep {marker}", PATIENCE, cancelled_when_begun(marker))
    assert (outcome.cancelled, outcome.timed_out) == (True, False)
    assert gone(marker)
    assert shell.ending.why == "cancelled"


def test_shell_that_reads_no_more_commands_is_ended_at_timeout(shell: RememberedShell) -> None:
    assert shell.run("set -n", 0.5).timed_out
    assert not shell.alive


def test_long_command_and_long_output_arrive_whole(say: Say, shell: RememberedShell) -> None:
    body = "x" * 200_000
    assert say(f"cat > long <<'END'\n{body}\nEND\nwc -c < long").strip() == str(len(body) + 1)
    outcome = shell.run("seq 100000; echo the end", PATIENCE)
    assert outcome.stdout.cut_bytes > 0
    assert outcome.stdout.tail.endswith(b"100000\nthe end\n")
    with open(outcome.stdout.spool, "rb") as whole:
        assert len(whole.read()) == outcome.stdout.total_bytes


def test_nul_in_command_is_refused_and_shell_lives(shell: RememberedShell, say: Say) -> None:
    with pytest.raises(CommandNotStarted):
        shell.run("echo a\0b", PATIENCE)
    assert say("echo on") == "on\n"


def test_dropped_shell_ends_and_next_one_is_new(shells: Shells, shell: RememberedShell, marker: str) -> None:
    shell.run(f"word=old; sleep {marker} &", PATIENCE)
    shells.drop("main")
    assert gone(marker)
    assert shells.get("main", merged=True).run("echo [$word]", PATIENCE).stdout.head == b"[]\n"


def test_many_shells_leave_no_handle_or_thread(processes: Processes) -> None:
    shells = Shells(processes)
    shells.get("a", merged=False).run("true", PATIENCE)
    shells.drop("a")
    before = open_handles(), threading.active_count()
    for _ in range(30):
        shells.get("a", merged=False).run("true", PATIENCE)
        shells.drop("a")
    assert none_left(lambda: [] if (open_handles(), threading.active_count()) == before else [1])
    shells.close()


def test_shell_starts_in_root_of_any_name(tmp_path: Path) -> None:
    root = tmp_path / "a 'quoted' näme"
    with workspace(root) as processes:
        shells = Shells(processes)
        shell = shells.get("main", merged=True)
        assert os.fsdecode(shell.run("pwd", PATIENCE).stdout.head) == f"{root}\n"
        shells.close()
