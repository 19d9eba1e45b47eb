"""Attacks the sandbox from inside, at the default level: no attack may reach anything outside.

The tables are in sandbox.toml. The attacks that harm only the canaries of the test also run without a sandbox and must
work there: an attack that never works proves nothing.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from attacks.sandbox_arena import Arena, opened
from support.sandboxes import PYTHON, X86, has_bubblewrap, said, sh

from handrail.kernel.process.terminals import Terminals
from handrail.kernel.sandbox.sandbox import SandboxSettings

TABLES = tomllib.loads(Path(__file__).with_name("sandbox.toml").read_text())
REAL = {name: (language, text) for language, table in TABLES["real"].items() for name, text in table.items()}
CONFINED = {name: (language, text) for language, table in TABLES["confined"].items() for name, text in table.items()}
CALLS: dict[str, tuple[int, int, str]] = TABLES["calls"]
MUST_WORK: dict[str, str] = TABLES["must_work"]

SYSCALL = "import ctypes, os\ncall = ctypes.CDLL(None, use_errno=True).syscall\n"
REFUSED = "\nassert result == -1, 'ESCAPED'\nprint(os.strerror(ctypes.get_errno()))"
NOBODY = 65534

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    base = tmp_path_factory.mktemp("arena")
    if not has_bubblewrap(base / "probe"):
        pytest.skip("this kernel allows no user namespaces: only level `reduced` can be enforced here")
    base.chmod(0o755)
    with opened(
        base, SandboxSettings(readable=(str(base / "shown"),), environment=("MY_SETTING", "FAKE_API_KEY"))
    ) as made:
        yield made


@pytest.mark.parametrize("name", [*REAL, *CONFINED])
def test_sandbox_attack_reaches_nothing_outside(arena: Arena, name: str) -> None:
    assert arena.processes.sandbox.start().level == "strict"
    before = arena.state()
    outcome = arena.attack(*{**REAL, **CONFINED}[name])
    assert arena.damage(before, outcome) == []
    assert not outcome.sandbox_died


@pytest.mark.parametrize("name", CALLS)
def test_system_call_that_no_command_needs_is_refused(arena: Arena, name: str) -> None:
    x86, arm, arguments = CALLS[name]
    outcome = arena.attack("py", f"{SYSCALL}result = call({x86 if X86 else arm}, {arguments}){REFUSED}")
    wanted = "Function not implemented" if name == "clone3" else "Operation not permitted"
    assert said(outcome) == f"{wanted}\n"


# mov eax, 20 (getpid); int 0x80; ret
I386 = """
import ctypes, mmap
m = mmap.mmap(-1, 4096, prot=7)
m.write(bytes.fromhex('b814000000cd80c3'))
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()
print('ESCAPED')
"""
X32 = f"{SYSCALL}call(0x40000000 + 39)\nprint('ESCAPED')"


@pytest.mark.skipif(not X86, reason="only x86_64 kernels speak other ABIs to a 64-bit program")
@pytest.mark.parametrize("text", [I386, X32], ids=["i386", "x32"])
def test_system_call_of_another_abi_kills_program(arena: Arena, text: str) -> None:
    outcome = arena.attack("py", text)
    assert (said(outcome), outcome.signal) == ("", "SIGSYS")


@pytest.mark.parametrize("name", REAL)
def test_attack_without_sandbox_causes_damage(tmp_path: Path, name: str) -> None:
    with opened(tmp_path / "arena", SandboxSettings(level="off")) as arena:
        before = arena.state()
        outcome = arena.attack(*REAL[name])
        if said(outcome) == "Function not implemented\n":
            pytest.skip("this kernel does not have the call")
        assert arena.damage(before, outcome) != [], said(outcome)


def test_commands_get_listed_variables_and_no_secrets(arena: Arena) -> None:
    names = {line.split(b"=")[0].decode() for line in sh(arena.processes, "env").stdout.head.splitlines()}
    assert {"PATH", "HOME", "LANG", "TERM", "MY_SETTING"} <= names
    assert not names & {"FAKE_API_KEY", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "SSH_AUTH_SOCK"}


TYPE = """
import fcntl
try: fcntl.ioctl(0, 0x5412, b'x')
except OSError as e: print(e.strerror)
else: print('ESCAPED')
"""


def test_command_cannot_type_into_its_terminal(arena: Arena) -> None:
    terminals = Terminals(arena.processes.sandbox)
    reading = terminals.start("t", [PYTHON, "-I", "-c", TYPE]).read(20, 0.2, b"never")
    terminals.close()
    assert reading.data == b"Operation not permitted\n"


def test_command_sees_user_id_that_is_not_root(arena: Arena) -> None:
    assert sh(arena.processes, "id -u").stdout.head != b"0\n"


@pytest.mark.parametrize("name", MUST_WORK)
def test_ordinary_command_works_in_sandbox(arena: Arena, name: str) -> None:
    outcome = arena.attack("sh", f"set -o pipefail; {MUST_WORK[name]}")
    assert outcome.exit_code == 0, said(outcome)


@pytest.mark.slow
@pytest.mark.root
def test_sandbox_attacks_fail_for_ordinary_user() -> None:
    """Run this file again as `nobody`, with the same tables."""
    ran = _run_as_nobody("-m", "not serial", "-k", "not attack_without_sandbox")
    assert ran.returncode == 0, "run this file as an ordinary user to see which test failed"


@pytest.mark.root
def test_ordinary_commands_work_for_ordinary_user() -> None:
    said = _run_as_nobody("-k", "test_ordinary_command_works_in_sandbox").stdout.decode()
    if f"{len(MUST_WORK)} skipped" in said:
        pytest.skip("`nobody` cannot start bubblewrap here")
    assert f"{len(MUST_WORK)} passed" in said, said


@pytest.mark.serial
@pytest.mark.root
def test_fork_bomb_of_ordinary_user_is_stopped() -> None:
    ran = _run_as_nobody("-m", "serial")
    assert ran.returncode == 0, "run this file as an ordinary user to see which test failed"


def _run_as_nobody(*chosen: str) -> "subprocess.CompletedProcess[bytes]":
    """Run the tests of this file and of the confinement as `nobody`."""
    interpreters = [sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"]
    tried = [(path, _as_nobody([path, "-c", "import pytest, hypothesis"])) for path in interpreters]
    usable = [path for path, ran in tried if ran is not None and ran.returncode == 0]
    if not usable:
        pytest.skip("no interpreter with our dependencies may be run by `nobody` here")
    base = Path(tempfile.mkdtemp(prefix="handrail-nobody-"))
    os.chown(base, NOBODY, NOBODY)
    tests = [__file__, str(Path(__file__).parent.parent / "kernel" / "test_confinement.py")]
    try:
        ran = _as_nobody([usable[0], "-m", "pytest", "--basetemp", str(base / "t"), *tests, *chosen])
        assert ran is not None
        return ran
    finally:
        shutil.rmtree(base)


def _as_nobody(command: list[str]) -> "subprocess.CompletedProcess[bytes] | None":
    """Run a program as `nobody`; return None if that user cannot start it."""
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": paths}
    try:
        ran = subprocess.run(
            command,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            check=False,
            cwd="/",
            env=environment,
        )
    except OSError:
        return None
    print(ran.stdout.decode()[-4000:])
    return ran
