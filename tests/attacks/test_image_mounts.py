"""Attacks the host from container images that run: their links, their mount points, their users and their marks."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import environments
from support.layers import needs_overlays
from support.oci_images import Entry, directory, entry, layer, layout, symlink

import handrail
from handrail import CallError, HandrailError, ImageError, Snapshot, ToolResult, Workspace, WorkspaceError
from handrail.kernel.layers.upper import LayerBusy, Upper

pytestmark = [needs_overlays, pytest.mark.sandbox]

POINTS = ("etc", "proc", "dev", "tmp", "testbed")
SH = ("/bin/sh", "-c")


@pytest.fixture
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    return environments.busybox(environments.shared_place(tmp_path_factory))


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return a directory of the host with a file, which no image may read, change or add to."""
    place = tmp_path / "outside"
    place.mkdir()
    (place / "victim").write_text("secret")
    (place / "resolv.conf").write_text("secret")
    return place


SETTINGS = {"Env": ["PATH=/bin"], "WorkingDir": "/testbed"}


def busybox_with(
    place: Path, image: str, *entries: Entry, without: str = "", settings: dict[str, Any] = SETTINGS
) -> str:
    """Return an image of busybox with one more layer, whose links take the place of what is below."""
    below = Path(image.split(":")[1]).parent / "files" / "bin" / "busybox"
    tops = [directory(name) for name in ("etc", "testbed", "root") if name != without]
    first = layer(
        *tops, directory("bin"), entry("bin/busybox", below.read_bytes(), mode=0o755), symlink("bin/sh", "busybox")
    )
    return layout(place / "attack", first, layer(*entries), settings=settings, pack=bytes)


def is_unharmed(outside: Path) -> bool:
    return {path.name: path.read_text() for path in outside.iterdir()} == {"victim": "secret", "resolv.conf": "secret"}


def run(workspace: Workspace, text: str) -> ToolResult:
    return workspace.call("codex", "shell", {"command": text})


@pytest.mark.parametrize("under", ["/oldroot", ""])
@pytest.mark.parametrize("point", POINTS)
def test_image_with_link_as_mount_point_is_refused(
    point: str, under: str, image: str, outside: Path, tmp_path: Path
) -> None:
    name = busybox_with(tmp_path, image, symlink(point, f"{under}{outside}"), without=point)
    if point == "testbed":
        with pytest.raises(ImageError, match="/testbed of the image is a link"):
            Workspace(image=name)
    else:
        with Workspace(image=name, approve="auto") as workspace:
            ran = run(workspace, "cat /testbed/victim; echo x > /testbed/new; echo x > /tmp/new; echo x > /etc/new")
        assert ran.error is not None
        assert f"/{point} of the image is a link" in ran.error.message
    assert is_unharmed(outside)


@pytest.mark.parametrize("name", ["resolv.conf", "hosts"])
@pytest.mark.parametrize("under", ["/oldroot", ""])
def test_image_with_link_as_file_of_network_gets_file_of_its_own(
    name: str, under: str, image: str, outside: Path, tmp_path: Path
) -> None:
    made = busybox_with(tmp_path, image, symlink(f"etc/{name}", f"{under}{outside}/resolv.conf"))
    with Workspace(image=made, approve="auto") as workspace:
        ran = run(workspace, f"test -L /etc/{name} || cat /etc/{name}")
        assert "192.0.2.1" in ran.text if name == "resolv.conf" else "localhost" in ran.text
    assert is_unharmed(outside)


def test_mount_points_cannot_be_exchanged_while_another_sandbox_starts(image: str, outside: Path) -> None:
    """Each round starts a sandbox of its own, while commands of the first one try to put links in its way."""
    swap = (  # each `mv` of a mount point must fail
        "while :; do for d in proc dev tmp etc testbed; do mv /$d /moved 2>/dev/null && "
        f"ln -s /oldroot{outside} /$d && rm /$d; mv /moved /$d 2>/dev/null; done; "
        f"ln -sf /oldroot{outside}/resolv.conf /etc/resolv.conf; done"
    )
    with Workspace(image=image, approve="auto") as workspace:
        stop = threading.Thread(target=run, args=(workspace, f"timeout 6 sh -c '{swap}'"))
        stop.start()
        for _ in range(8):
            with workspace.session() as another:
                another.tools("codex").call("shell", {"command": "echo x > /tmp/new; echo x > new; echo x > /etc/new"})
        stop.join()
    assert is_unharmed(outside)


def test_link_in_place_of_working_directory_is_followed_by_nothing(image: str, outside: Path) -> None:
    with Workspace(image=image, approve="auto", layered="kept") as workspace:
        assert run(workspace, f"cd /; rm -rf /testbed; ln -s {outside} /testbed").success
        workspace.call("file", "file.read", {"path": "victim"})
        workspace.call("file", "file.write", {"path": "new", "content": "x"})
        assert workspace.changes() is not None
        with pytest.raises(CallError, match="is a link"):
            workspace.fork(1, running="end")
    with pytest.raises(ImageError, match="/testbed of the image is a link"):
        Workspace(image=image, layered="kept")
    assert is_unharmed(outside)


def test_file_tools_follow_no_link_of_image_to_host(image: str, outside: Path, tmp_path: Path) -> None:
    name = busybox_with(tmp_path, image, symlink("testbed/l", str(outside)), symlink("testbed/v", f"{outside}/victim"))
    with Workspace(image=name, approve="auto") as workspace:
        for path in ("l/victim", "v"):
            assert not workspace.call("file", "file.read", {"path": path}).success
            assert not workspace.call("file", "file.write", {"path": path, "content": "x"}).success
        assert "secret" not in workspace.call("file", "file.search", {"pattern": "secret"}).text
        assert not run(workspace, f"cat {outside}/victim").text.count("secret")
    assert is_unharmed(outside)


def test_commands_see_no_file_of_host_and_no_handle(image: str) -> None:
    with Workspace(image=image, approve="auto") as workspace:
        seen = run(workspace, "ls -A /; ls /proc/self/fd; id -u; cat /proc/self/status | grep CapEff").text
    for name in ("home", "usr", "lib", "mnt"):
        assert name not in seen.split()
    assert "CapEff:\\t0000000000000000" in seen or "CapEff:\t0000000000000000" in seen
    assert not {"5", "6", "7", "8"} & {*seen.replace("\\n", "\n").split("\n")}


def test_marks_of_overlayfs_set_inside_have_no_effect(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A directory that a command marks as opaque hides nothing of the image, in a fork neither."""
    name = environments.debian(environments.shared_place(tmp_path_factory))
    marks = (
        "os.setxattr('/usr/bin', 'user.overlay.opaque', b'y'); os.setxattr('/etc', 'user.overlay.redirect', b'/root')"
    )
    with Workspace(image=name, approve="auto") as workspace:
        run(workspace, f'python3 -c "import os; {marks}"')
        [fork] = workspace.fork(1, running="end")
        with fork:
            assert run(fork, "test -x /usr/bin/git && echo there").text.count("there")


def test_setuid_bit_is_never_set(image: str) -> None:
    with Workspace(image=image, approve="auto") as workspace:
        assert not run(workspace, "cp /bin/busybox su; chmod 4755 su; test -u su").text.count('"returncode": 0')
        fd = workspace._services.boundary.fd
        workspace.call("file", "file.write", {"path": "f", "content": "x"})
        assert all(not os.stat(name, dir_fd=fd).st_mode & 0o6000 for name in ("f", "su"))
        assert os.fstatvfs(fd).f_flag & os.ST_NOSUID


@pytest.mark.parametrize(
    ("workdir", "entries", "why"),
    [
        ("/../..", [], "working directory"),
        ("/proc/self", [], "working directory"),
        ("testbed", [], "working directory"),
        ("/testbed", [symlink("upper/testbed", "OUT")], "is a link"),
        ("/testbed", [symlink("upper/l", "OUT"), entry("upper/l/new")], "is missing"),
    ],
)
def test_hostile_snapshot_of_image_is_refused(
    workdir: str, entries: list[Entry], why: str, image: str, outside: Path
) -> None:
    with Workspace(image=image) as workspace, workspace.snapshot().read() as (about, _):
        head = json.dumps({"version": 1, **about._asdict(), "workdir": workdir}).encode()
    for info, _ in entries:
        info.linkname = info.linkname.replace("OUT", str(outside))
    with pytest.raises(HandrailError, match=why):
        Workspace.open(Snapshot.of(layer(entry("snapshot.json", head), *entries, entry("end"))))
    assert is_unharmed(outside)
    assert not [*(Path(os.environ["HANDRAIL_STATE_DIR"]) / "layers").glob("*/named/fork-*/layer.json")]


def test_second_mount_of_layer_is_refused(image: str) -> None:
    with Workspace(image=image, layered="one") as workspace:
        with pytest.raises(WorkspaceError, match="open already"):
            Workspace(image=image, layered="one")
        with pytest.raises(LayerBusy):
            Upper.open(workspace._services.layer.path)  # type: ignore[union-attr]


def test_image_without_sandbox_is_refused(image: str) -> None:
    with pytest.raises(ImageError, match="sandbox is off"):
        Workspace(image=image, sandbox="off")


@pytest.mark.parametrize(
    ("workdir", "why"),
    [
        ("testbed", "no absolute path"),
        ("/a/../../etc", "no absolute path"),
        ("/proc/self", "private to each sandbox"),
        ("//./tmp/x", "private to each sandbox"),
        ("/dev", "private to each sandbox"),
        ("/" + "a" * 300, "too long"),
        ("/a" * 3000, "too long"),
        ("/tmp/\x1b[31m\ud800\n", "private to each sandbox"),
    ],
)
def test_image_with_wrong_working_directory_is_refused(workdir: str, why: str, image: str) -> None:
    with pytest.raises(ImageError, match=f"the working directory .*{why}") as error:
        Workspace(image=image, workdir=workdir)
    assert str(error.value).isprintable()


def test_odd_variables_of_image_reach_commands_only(image: str, tmp_path: Path) -> None:
    odd = ["LD_PRELOAD=/evil.so", "PYTHONHOME=/evil", "BASH_ENV=/evil", "A=x\ny", "B B=1", "$(id)=2", "IFS=x", "PATH="]
    busybox = busybox_with(tmp_path, image, directory("work"), settings={"Env": odd})
    with Workspace(image=busybox, approve="auto", workdir="/work") as workspace:
        assert sorted(
            set(workspace.exec(["/bin/busybox", "env", "-0"]).stdout.decode().split("\0")) & {*odd}
        ) == sorted(odd)
        assert run(workspace, "echo $A").text.count("x")
        assert workspace.call("claude", "bash", {"command": "echo one; cd /"}).text.startswith("one")
        assert workspace.call("claude", "bash", {"command": "echo $PWD"}).text.startswith("/")


AS_USER = """
import sys
from handrail import Workspace
with Workspace(image=sys.argv[1], approve="auto") as workspace:
    said = [workspace.call("codex", "shell", {"command": text}).text for text in sys.argv[2:]]
    print(said)
"""


@pytest.fixture
def ordinary(tmp_path: Path) -> Iterator[list[str]]:
    """Return the start of a command that runs Python as a user without privileges, with a state of its own."""
    if os.geteuid():
        yield [sys.executable, "-P"]
        return
    python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    packages = Path(pytest.__file__).parent.parent
    source = Path(handrail.__file__).parent.parent
    place = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    os.chown(place, 65534, 65534)
    variables = [
        f"HANDRAIL_STATE_DIR={place}/state",
        f"HANDRAIL_CONFIG_DIR={place}/c",
        f"PYTHONPATH={source}:{packages}",
    ]
    argv = [
        "setpriv",
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        "env",
        "PYTHONDONTWRITEBYTECODE=1",
        *variables,
        python,
        "-P",
    ]
    if subprocess.run([*argv, "-c", "import handrail.workspace"], capture_output=True, check=False).returncode:
        pytest.skip(f"another user cannot run {python} with Handrail")
    yield argv
    subprocess.run(["rm", "-rf", place], check=True)


def test_image_runs_for_ordinary_user(ordinary: list[str], image: str) -> None:
    read_by_all(image)
    done = subprocess.run(
        [*ordinary, "-c", AS_USER, image, "id -u; pwd; echo $GREETING; touch /new && echo made"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for word in ("0", "/testbed", "from the image", "made"):
        assert word in done.stdout


def test_links_of_image_are_refused_for_ordinary_user(
    ordinary: list[str], image: str, outside: Path, tmp_path: Path
) -> None:
    outside.chmod(0o777)
    name = busybox_with(tmp_path, image, symlink("etc", f"/oldroot{outside}"), without="etc")
    read_by_all(name)
    done = subprocess.run(
        [*ordinary, "-c", AS_USER, name, "echo x > /etc/new"], capture_output=True, text=True, check=False
    )
    assert "/etc of the image is a link" in done.stdout, done.stderr
    assert is_unharmed(outside)


def read_by_all(image: str) -> None:
    """Let every user reach an image of this test."""
    place = Path(image.split(":")[1])
    subprocess.run(["chmod", "-R", "a+rX", place], check=True)
    for parent in place.parents:
        if parent.owner() == place.owner() and "pytest" in str(parent):
            parent.chmod(parent.stat().st_mode | 0o755)
