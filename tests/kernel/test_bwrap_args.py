"""Tests the pure parts of the sandbox: arguments of bubblewrap, seccomp filter, visible paths, explanations."""

import errno
import os
import struct
from pathlib import Path

import pytest

from handrail.kernel.fs.trusted_paths import resolved
from handrail.kernel.sandbox import bwrap_args, seccomp
from handrail.kernel.sandbox.denials import Denial, Printed, explain
from handrail.kernel.sandbox.levels import looks_secret
from handrail.kernel.sandbox.sandbox import Confinement
from handrail.kernel.sandbox.view import toolchains, visible_paths
from handrail.kernel.sandbox.view.toolchains import Toolchains
from handrail.model.limits import Limits

STRICT = Confinement("strict", "bwrap")


def view(*, network: bool = False) -> bwrap_args.Mounts:
    return bwrap_args.Mounts(
        root="/w",
        root_fd=3,
        home="/home/p",
        uid=1000,
        gid=1000,
        network=network,
        environment={"A": "b c"},
        limits=Limits(),
        system=[("/usr", ""), ("/bin", "usr/bin")],
        read_only=[("/opt/tool", 4)],
        writable=[("/data", 5)],
        guards=[("/w/.git", 6, True), ("/w/.git/hooks", 7, False)],
        hidden_files=[("/w/.env", 8)],
        hidden_directories=["/w/private"],
        data=[("/etc/passwd", 9)],
    )


def pairs(words: list[str], option: str, count: int) -> list[list[str]]:
    return [words[at + 1 : at + 1 + count] for at, word in enumerate(words) if word == option]


def test_bwrap_arguments_unshare_and_drop_everything() -> None:
    words = bwrap_args.arguments(view(), 20, None)
    for option in (
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--new-session",
        "--die-with-parent",
    ):
        assert option in words
    assert "--share-net" not in words
    assert pairs(words, "--cap-drop", 1) == [["ALL"]]
    assert pairs(words, "--seccomp", 1) == [["20"]]
    assert "--info-fd" not in words
    assert "--share-net" in bwrap_args.arguments(view(network=True), 20, 21)


def test_bwrap_arguments_put_covering_mounts_last() -> None:
    words = bwrap_args.arguments(view(), 20, 21)
    order = ["/usr", "/tmp", "/home/p", "/opt/tool", "/data", "/w", "/w/.git", "/w/.git/hooks", "/w/.env"]
    places_of = [max(at for at, word in enumerate(words) if word == path) for path in order[:5]]
    places_of += [words.index(path) for path in order[5:]]
    assert places_of == sorted(places_of)
    assert pairs(words, "--bind-fd", 2) == [["5", "/data"], ["3", "/w"], ["6", "/w/.git"]]
    assert pairs(words, "--ro-bind-fd", 2) == [["4", "/opt/tool"], ["7", "/w/.git/hooks"]]
    assert pairs(words, "--remount-ro", 1) == [["/proc"], ["/dev"], ["/w/private"], ["/"]]
    assert pairs(words, "--setenv", 2) == [["A", "b c"]]


def test_bwrap_arguments_limit_size_of_private_directories() -> None:
    words = bwrap_args.arguments(view(), 20, None)
    sized = [words[at + 1] for at, word in enumerate(words) if word == "--tmpfs" and words[at - 2] == "--size"]
    assert sized == ["/dev/shm", "/tmp", "/home/p"]


def decide(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """Interpret the instructions of the filter and return its decision."""
    data = struct.pack("=iIQ6Q", number, arch, 0, *(*arguments, *[0] * (6 - len(arguments))))
    steps = list(struct.iter_unpack("=HBBI", program))
    at, value = 0, 0
    while True:
        code, if_true, if_false, constant = steps[at]
        at += 1
        if code == seccomp.LOAD:
            value = struct.unpack_from("=I", data, constant)[0]
        elif code == seccomp.RETURN:
            return int(constant)
        else:
            holds = {
                seccomp.JUMP_EQ: value == constant,
                seccomp.JUMP_GE: value >= constant,
                seccomp.JUMP_SET: bool(value & constant),
            }[code]
            at += if_true if holds else if_false


def refused(error: int) -> int:
    return seccomp.REFUSE | error


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_seccomp_filter_decides_same_on_both_architectures(machine: str) -> None:
    program, arch = seccomp.assemble(machine), seccomp.ARCHES[machine]
    column = 0 if machine == "x86_64" else 1
    for numbers in seccomp.REFUSED.values():
        if (number := numbers[column]) is not None:
            assert decide(program, arch, number) == refused(errno.EPERM)
    for numbers in seccomp.MISSING.values():
        assert decide(program, arch, numbers[column] or 0) == refused(errno.ENOSYS)
    socket_call, clone, ioctl = (n[column] or 0 for n in (seccomp.SOCKET, seccomp.CLONE, seccomp.IOCTL))
    for family in range(64):
        allowed = family in (seccomp.UNIX, seccomp.INET, seccomp.INET6, seccomp.NETLINK)
        wanted = seccomp.ALLOW if allowed else refused(errno.EAFNOSUPPORT)
        assert decide(program, arch, socket_call, family) == wanted
    assert decide(program, arch, clone, 0x11) == seccomp.ALLOW
    assert decide(program, arch, clone, 0x10000000 | 0x11) == refused(errno.EPERM)
    assert decide(program, arch, ioctl, 0, 0x5412) == refused(errno.EPERM)
    assert decide(program, arch, ioctl, 0, 0x5413) == seccomp.ALLOW
    other = next(number for name, number in seccomp.ARCHES.items() if name != machine)
    assert decide(program, other, 0) == seccomp.KILL


def test_seccomp_filter_checks_mode_only_when_file_is_created() -> None:
    program, arch = seccomp.assemble("x86_64"), seccomp.ARCHES["x86_64"]
    openat = 257
    assert decide(program, arch, openat, 0, 0, os.O_RDONLY, 0o4755) == seccomp.ALLOW
    assert decide(program, arch, openat, 0, 0, os.O_CREAT, 0o644) == seccomp.ALLOW
    assert decide(program, arch, openat, 0, 0, os.O_CREAT, 0o4755) == refused(errno.EPERM)
    assert decide(program, arch, 0x40000000 + 39) == seccomp.KILL


def program(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def python(prefix: Path) -> None:
    program(prefix / "bin" / "python3")
    (prefix / "lib" / "python3.1").mkdir(parents=True)
    (prefix / "lib" / "python3.1" / "os.py").write_text("")


def shown(path: str, home: Path, root: Path, **variables: str) -> list[str]:
    found = Toolchains({"PATH": path, **variables}, str(home), str(root), (str(root),)).shown()
    assert all(os.path.realpath(named) == real for named, real in found)
    return [named for named, _ in found]


def test_toolchain_in_home_is_shown_only_in_parts(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in (".local/share", ".local/lib", ".rustup/toolchains", ".nvm/versions", "empty/bin"):
        (home / name).mkdir(parents=True)
    for name in (".cargo/bin", ".local/bin", "bin", "env/bin"):
        program(home / name / "program")
    (home / "env" / "pyvenv.cfg").write_text(f"home = {tmp_path}/base/bin\nversion = 3\n")
    python(tmp_path / "base")
    names = (".cargo/bin", ".local/bin", "bin", "env/bin", "empty/bin", "missing")
    path = os.pathsep.join([*(str(home / name) for name in names), "relative", "/usr/bin"])
    expected = [".cargo/bin", ".local/bin", ".local/lib", ".rustup", "bin", "env"]
    ours = [entry for entry in shown(path, home, tmp_path / "ws") if entry.startswith(str(tmp_path))]
    assert ours == [f"{tmp_path}/base/bin", f"{tmp_path}/base/lib", *(str(home / name) for name in expected)]


def test_home_and_workspace_are_never_shown_as_toolchain(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\n")
    for name in ("bin", "ws/bin"):
        program(tmp_path / name / "program")
    path = f"{tmp_path}/bin:{tmp_path}/ws/bin:{tmp_path}/ws:{tmp_path}"
    found = shown(path, tmp_path, tmp_path / "ws", PYENV_ROOT=str(tmp_path))
    assert [each for each in found if each.startswith(str(tmp_path))] == []


def test_conda_environment_is_shown_without_base(tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    program(tmp_path / "bin" / "program")
    assert str(tmp_path) in shown(str(tmp_path / "bin"), Path("/nowhere"), Path("/w"))


def test_base_of_environment_in_system_directory_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchains, "SYSTEM", (str(tmp_path / "system"),))
    program(tmp_path / "system" / "app" / "bin" / "program")
    python(tmp_path / "base")
    (tmp_path / "system/app/pyvenv.cfg").write_text(f"home = {tmp_path}/base/bin\n")
    found = shown(str(tmp_path / "system/app/bin"), Path("/nowhere"), Path("/w"))
    assert {f"{tmp_path}/base/bin", f"{tmp_path}/base/lib"} <= {*found}
    assert str(tmp_path / "system/app") not in found


@pytest.mark.parametrize("home", ["/etc/bin", "relative/bin", "bin", "", "/", "{base}", "{base}/bin/"])
def test_environment_base_that_is_not_python_is_not_shown(tmp_path: Path, home: str) -> None:
    base = tmp_path / "base"
    (base / "bin").mkdir(parents=True)
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").write_text(f"home = {home.format(base=base)}\n")
    before = shown("", Path("/nowhere"), Path("/w"))
    assert shown(f"{tmp_path}/env/bin", Path("/nowhere"), Path("/w")) == before


@pytest.mark.parametrize(
    ("path", "leads"),
    [
        ("a/file", "a/file"),
        ("a/../a/./file", "a/file"),
        ("link/file", "a/file"),
        ("absolute", "a"),
        ("up/ws/..", ""),
        ("a/none", None),
        ("loop", None),
        ("a/file/x", None),
        ("ws", "ws"),
        ("ws/file", None),
        ("ws/../a", "a"),
        ("ws/out/file", None),
        ("to-ws", "ws"),
        ("to-ws/out", None),
        ("through", None),
    ],
)
def test_resolved_path_never_leads_through_writable_directory(tmp_path: Path, path: str, leads: str | None) -> None:
    for name in ("a", "ws"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("")
    links = {"link": "a", "absolute": f"{tmp_path}/a", "up": "a/..", "loop": "loop", "ws/out": f"{tmp_path}/a"}
    for name, target in {**links, "to-ws": "ws", "through": "ws/out"}.items():
        (tmp_path / name).symlink_to(target)
    found = resolved(f"{tmp_path}/{path}", (f"{tmp_path}/ws",))
    assert found == (None if leads is None else f"{tmp_path}/{leads}".rstrip("/"))


@pytest.mark.parametrize(
    ("home", "where"),
    [
        ("/home/p", "/home/p"),
        ("/root", "/root"),
        ("/", "/home"),
        ("/usr/games", "/home"),
        ("relative", "/home"),
    ],
)
def test_private_home_has_its_own_path_if_possible(home: str, where: str) -> None:
    assert visible_paths.private_home(home) == where


@pytest.mark.parametrize(
    "name", ["X_API_KEY", "GITHUB_TOKEN", "PGPASSWORD", "MYSQL_PWD", "aws_secret_x", "SSH_AUTH_SOCK"]
)
def test_secret_looking_variable_is_removed_from_environment(name: str) -> None:
    assert looks_secret(name)
    assert name not in visible_paths.environment({name: "x", "PATH": "/bin"}, "/h", (name,))


@pytest.mark.parametrize("name", ["PATH", "PWD", "HOME", "LANG", "EDITOR", "GOFLAGS"])
def test_ordinary_variable_does_not_look_secret(name: str) -> None:
    assert not looks_secret(name)


def test_environment_has_only_basic_and_listed_variables() -> None:
    asked_user = {"PATH": "/bin:relative::/x", "LC_ALL": "de", "OTHER": "1", "WANTED": "2", "HOME": "/real"}
    assert visible_paths.environment(asked_user, "/h", ("WANTED",)) == {
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "LC_ALL": "de",
        "WANTED": "2",
        "PATH": "/bin:/x",
        "HOME": "/h",
    }


@pytest.mark.parametrize(
    ("stderr", "denials"),
    [
        (b"touch: cannot touch '/etc/x': Read-only file system\n", [Denial("write_outside", "/etc/x")]),
        (b"bash: line 1: /usr/x: Read-only file system\n", [Denial("write_outside", "/usr/x")]),
        (b"bash: /w/.git/hooks/x: Read-only file system\n", [Denial("guarded", "/w/.git/hooks/x")]),
        (
            b"error: could not write config file .git/config: Read-only file system",
            [Denial("git_config", ".git/config")],
        ),
        (b"curl: (6) Could not resolve host: example.com\n", [Denial("network")]),
        (b"OSError: [Errno 101] Network is unreachable\n", [Denial("network")]),
        (b"Permission denied\n", []),
    ],
)
def test_explain_names_kind_and_path_of_denial(stderr: bytes, denials: list[Denial]) -> None:
    assert explain(Printed(stderr), failed=True, root="/w", confinement=STRICT) == denials


def test_explain_returns_nothing_for_sandbox_off() -> None:
    printed = Printed(b"x: Read-only file system; Network is unreachable")
    assert explain(printed, failed=True, root="/w", confinement=Confinement("off", "nothing")) == []
