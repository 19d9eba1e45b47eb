"""Tries every row of an attack table with every resolver, directly and through the file tools: nothing gets out."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.trap_arena import ODD_NAMES, SECRET, Arena, build

from handrail import FsBoundary, ToolResult, Workspace
from handrail.kernel.fs import resolver as resolve
from handrail.model.faults import BadPath, PathFault, TooLarge

OUT, GONE, BAD = "path_outside_workspace", "file_not_found", "invalid_parameters"
NOT_DIR, IS_DIR, LOOP = "not_a_directory", "is_directory", "link_loop"
SPECIAL, LARGE, FAILED = "not_a_file", "file_too_large", "write_failed"

# path, answer to a read, answer to a write
TABLE: dict[str, list[tuple[str, str, str]]] = {
    "traversal": [
        ("../outside/secret.txt", OUT, OUT),
        ("../outside/new.txt", OUT, OUT),
        ("sub/../../outside/secret.txt", OUT, OUT),
        ("sub/deep/../../../outside/secret.txt", OUT, OUT),
        ("..", OUT, OUT),
        ("../", OUT, OUT),
        ("../workspace/inside.txt", OUT, OUT),
        ("/etc/passwd", OUT, OUT),
        ("//etc/passwd", OUT, OUT),
        ("{outside}/secret.txt", OUT, OUT),
        ("{root}/../outside/secret.txt", OUT, OUT),
        ("{root}-evil/secret.txt", OUT, OUT),
        ("{root}-evil/new.txt", OUT, OUT),
        ("missing/../../outside/secret.txt", GONE, FAILED),
        ("missing/../inside.txt", GONE, FAILED),
        ("inside.txt/../../outside/secret.txt", GONE, FAILED),
        ("/proc/self/root/etc/passwd", OUT, OUT),
        ("/proc/self/cwd/x", OUT, OUT),
        ("/dev/fd/0", OUT, OUT),
        ("/dev/zero", OUT, OUT),
        ("{root}/inside.txt", "ok", "ok"),
        ("{root}//sub/./file.txt", "ok", "ok"),
        ("{root}", IS_DIR, FAILED),
        (".", IS_DIR, FAILED),
        ("sub/..", IS_DIR, FAILED),
        ("sub/../inside.txt", "ok", "ok"),
        ("./sub//deep/../file.txt", "ok", "ok"),
    ],
    "encodings": [
        ("..\\outside\\secret.txt", GONE, "ok"),
        ("sub\\..\\..\\outside\\secret.txt", GONE, "ok"),
        ("%2e%2e/outside/secret.txt", GONE, FAILED),
        ("%2e%2e%2foutside%2fsecret.txt", GONE, "ok"),
        ("..\uff0foutside\uff0fsecret.txt", GONE, "ok"),
        ("..\u2215outside\u2215secret.txt", GONE, "ok"),
        ("\u2025/outside/secret.txt", GONE, "ok"),
        ("\uff0e\uff0e/outside/secret.txt", GONE, "ok"),
        ("....//outside/secret.txt", GONE, "ok"),
        (".../...//outside/secret.txt", GONE, FAILED),
        ("file:///etc/passwd", GONE, "ok"),
        ("~/.ssh/id_rsa", GONE, FAILED),
        ("$HOME/.bashrc", GONE, FAILED),
        (" ../outside/secret.txt", GONE, "ok"),
        (".. /outside/secret.txt", GONE, "ok"),
        ("../outside/secret.txt ", OUT, OUT),
        ("\\\\?\\C:\\Windows\\win.ini", OUT, OUT),
        ("\\\\server\\share\\x", OUT, OUT),
        ("C:\\Windows\\win.ini", OUT, OUT),
        ("c:/Windows/win.ini", OUT, OUT),
        ("C:name", GONE, "ok"),
        ("inside.txt:stream", GONE, "ok"),
        ("NUL", GONE, "ok"),
        ("COM1.log", GONE, "ok"),
        ("inside.txt.", GONE, "ok"),
        ('"../outside/secret.txt"', OUT, OUT),
        ('"\\056\\056/outside/secret.txt"', OUT, OUT),
        ('"\\057etc/passwd"', OUT, OUT),
    ],
    "links": [
        ("out_abs", OUT, OUT),
        ("out_rel", OUT, OUT),
        ("out_dir", OUT, OUT),
        ("out_dir/secret.txt", OUT, OUT),
        ("out_dir/new.txt", OUT, OUT),
        ("out_dir/new/deeper/x.txt", OUT, OUT),
        ("out_dir_abs/dir/secret.txt", OUT, OUT),
        ("out_dir/../outside/secret.txt", OUT, OUT),
        ("out_sibling/secret.txt", OUT, OUT),
        ("chain", OUT, OUT),
        ("sub/up/secret.txt", OUT, OUT),
        ("in_dir/up/secret.txt", OUT, OUT),
        ("dangling_out", OUT, OUT),
        ("dangling_out_abs", OUT, OUT),
        ("dangling_out_dir/x.txt", OUT, OUT),
        ("dangling_in", GONE, FAILED),
        ("round_trip", OUT, OUT),
        ("proc_cwd/inside.txt", OUT, OUT),
        ("proc_root/etc/passwd", OUT, OUT),
        ("proc_environ", OUT, OUT),
        ("dev_fd/0", OUT, OUT),
        ("dev_zero", OUT, OUT),
        ("loop_a", LOOP, FAILED),
        ("loop_a/x", LOOP, FAILED),
        ("loop_self", LOOP, FAILED),
        ("in_rel", "ok", "ok"),
        ("in_abs", "ok", "ok"),
        ("in_dir/file.txt", "ok", "ok"),
        ("in_dir_abs/deep/x.txt", "ok", "ok"),
        ("in_dir/../inside.txt", "ok", "ok"),
        ("in_up_down", "ok", "ok"),
        ("in_chain", "ok", "ok"),
        ("sub/back", "ok", "ok"),
        ("other_root/inside_link", "ok", "ok"),
    ],
    "special files": [
        ("fifo", SPECIAL, FAILED),
        ("socket", SPECIAL, FAILED),
        ("fifo/x", GONE, FAILED),
        ("sparse", "ok", LARGE),
        ("sub", IS_DIR, FAILED),
        ("sub/", IS_DIR, FAILED),
        ("inside.txt/", NOT_DIR, FAILED),
        ("inside.txt/.", NOT_DIR, FAILED),
        ("inside.txt/x", GONE, FAILED),
        ("new/", GONE, FAILED),
        ("new/.", GONE, FAILED),
    ],
    "hard links": [("twin.txt", "ok", "ok")],
    "malformed": [
        ("", BAD, BAD),
        ("inside.txt\0", BAD, BAD),
        ("inside.txt\0/../../outside/secret.txt", BAD, BAD),
        ('"inside.txt\\000"', BAD, BAD),
        ("new\nline", GONE, "ok"),
        ("n" * 255, GONE, "ok"),
        ("n" * 256, BAD, FAILED),
        ("\u00e9" * 128, BAD, FAILED),
        ("n" * 5000, BAD, FAILED),
        ("a/" * 3000 + "x", BAD, FAILED),
        ("../" * 1300 + "etc/passwd", OUT, OUT),
        ("./" * 2000 + "inside.txt", "ok", "ok"),
        ("lone\ud800surrogate", BAD, BAD),
        ("raw\udcffbyte", BAD, BAD),
        ('"caf\\377\\376.txt"', "ok", "ok"),
        ('"new\\377.txt"', GONE, "ok"),
        *[(name.replace('"q"', '"\\"q\\""'), "ok", "ok") for name in ODD_NAMES],
    ],
}
ROWS = [pytest.param(*row, id=f"{kind}: {ascii(row[0])[:48]}") for kind, rows in TABLE.items() for row in rows]
RESOLVERS = ["openat2", "walk"]
CALLS: dict[str, dict[str, Any]] = {
    "file.read": {},
    "file.list": {},
    "file.patch": {"patches": [{"find": "two", "replace": "2"}]},
    "file.write": {"content": "mine"},
    "file.delete": {},
}


@pytest.fixture(params=RESOLVERS)
def arena(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Arena:
    use(request.param, monkeypatch)
    return build(tmp_path / "arena")


def use(resolver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every boundary that opens from now on use this resolver."""
    monkeypatch.setattr(resolve.Openat2, "works", staticmethod(lambda _: resolver == "openat2"))


def open_arena(arena: Arena) -> Workspace:
    return Workspace(str(arena.root), approve="auto", durability="none")


def verdict(result: ToolResult) -> str:
    assert SECRET not in str(result.to_dict())
    assert (result.error is None) == result.success
    return result.error.code if result.error else "ok"


def all_verdicts(arena: Arena, path: str) -> dict[str, str]:
    with open_arena(arena) as workspace:
        calls = {tool: {"path": arena.fill(path), **rest} for tool, rest in CALLS.items()}
        return {tool: verdict(workspace.call("file", tool, params)) for tool, params in calls.items()}


@pytest.mark.parametrize(("path", "read", "write"), ROWS)
def test_file_tools_stay_inside_root_and_both_resolvers_agree(
    path: str, read: str, write: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = []
    for resolver in RESOLVERS:
        use(resolver, monkeypatch)
        arena = build(tmp_path / resolver)
        answers.append(all_verdicts(arena, path))
        arena.check()
    assert answers[0] == answers[1]
    assert (answers[0]["file.read"], answers[0]["file.write"]) == (read, write)
    assert "internal_error" not in answers[0].values()


@pytest.mark.parametrize("resolver", RESOLVERS)
@pytest.mark.parametrize(("path", "read", "write"), ROWS)
def test_boundary_handles_lie_inside_root(path: str, read: str, write: str, resolver: Any, tmp_path: Path) -> None:
    arena = build(tmp_path / "arena")
    boundary = FsBoundary(arena.root, resolver=resolver)
    assert boundary.resolver == resolver
    opened = dict(_handles(boundary, arena.fill(path)))
    for handle in opened.values():
        place = os.readlink(f"/proc/self/fd/{handle}")
        os.close(handle)
        assert place == str(arena.root) or place.startswith(f"{arena.root}/")
    boundary.close()
    arena.check()
    assert ("file" in opened) == (read == "ok")


def _handles(boundary: FsBoundary, path: str) -> Iterator[tuple[str, int]]:
    ways: dict[str, Callable[[], int]] = {
        "file": lambda: boundary.open_file(path)[0],
        "directory": lambda: boundary.open_directory(path),
        "to change": lambda: boundary.locate(path).dir_fd,
        "to create": lambda: boundary.locate(path, future=True).dir_fd,
        "to remove": lambda: boundary.locate(path, follow=False).dir_fd,
    }
    for name, way in ways.items():
        try:
            yield name, way()
        except PathFault:
            continue


@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("path", [7, 1.5, True, ["inside.txt"], {"path": "inside.txt"}])
def test_path_parameter_that_is_not_a_string_is_rejected(workspace: Workspace, tool: str, path: Any) -> None:
    result = workspace.call("file", tool, {**CALLS[tool], "path": path})
    assert result.error is not None
    assert (result.error.code, result.error.message[:32]) == (BAD, "Parameter 'path' must be a strin")


def test_delete_of_link_removes_link_and_keeps_target(arena: Arena) -> None:
    with open_arena(arena) as workspace:
        for link in ("out_abs", "out_dir", "dangling_out", "in_rel", "in_dir_abs", "loop_a", "sub/up"):
            assert workspace.call("file", "file.delete", {"path": link}).success
            assert not os.path.lexists(arena.root / link)
    arena.check()
    assert (arena.root / "inside.txt").exists()
    assert (arena.root / "sub" / "file.txt").exists()


def test_write_through_link_changes_target_and_keeps_link(arena: Arena) -> None:
    with open_arena(arena) as workspace:
        result = workspace.call("file", "file.write", {"path": "in_abs", "content": "new"})
    assert result.files_affected == ["inside.txt"]
    assert (arena.root / "in_abs").is_symlink()
    assert (arena.root / "inside.txt").read_text() == "new"


def test_write_to_hard_link_replaces_it_and_keeps_outside_file(arena: Arena) -> None:
    with open_arena(arena) as workspace:
        assert workspace.call("file", "file.write", {"path": "twin.txt", "content": "mine"}).success
    arena.check()
    assert (arena.root / "twin.txt").read_text() == "mine"
    assert (arena.outside / "twin.txt").stat().st_nlink == 1


def test_list_omits_links_that_lead_outside(arena: Arena) -> None:
    with open_arena(arena) as workspace:
        output = workspace.call("file", "file.list", {}).output
    assert isinstance(output, dict)
    listed = {each["path"] for each in output["files"]} | set(output["directories"])
    leading_out = {"out_abs", "out_rel", "chain", "proc_environ", "dev_zero", "out_dir/", "proc_root/", "dev_fd/"}
    assert not listed & leading_out
    assert {"in_rel", "in_abs", "in_dir/", "in_dir_abs/", "sub/"} <= listed


def test_undecodable_name_can_be_listed_read_edited_and_deleted(arena: Arena) -> None:
    directory = os.fsencode(arena.root) + b"/d\xe9"
    os.mkdir(directory)
    with open(directory + b"/\xff.txt", "w") as file:
        file.write("old\n")
    os.symlink(b"\xff.txt", directory + b"/l\xff")
    with open_arena(arena) as workspace:

        def call(tool: str, **params: Any) -> Any:
            result = workspace.call("file", tool, params)
            assert result.success, result
            return result.output

        assert '"d\\351/"' in call("file.list")["directories"]
        listed = [each["path"] for each in call("file.list", path='"d\\351"')["files"]]
        assert listed == ['"d\\351/l\\377"', '"d\\351/\\377.txt"']
        for path in listed:
            assert call("file.read", path=path)["total_lines"] == 1
        call("file.patch", path=listed[1], patches=[{"find": "old", "replace": "new"}])
        call("file.write", path='"d\\351/\\376/new"', content="x")
        call("file.delete", path='"d\\351/\\376/new"')
    with open(directory + b"/\xff.txt") as file:
        assert file.read() == "new\n"


def test_deep_tree_works_up_to_path_length_limit(arena: Arena) -> None:
    handle = os.open(arena.root, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=handle)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(os.open("deepest", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.close(handle)
    with open_arena(arena) as workspace:
        deep = "/".join(["d" * 200] * 20)
        assert verdict(workspace.call("file", "file.write", {"path": f"{deep}/x", "content": "x"})) == "ok"
        assert verdict(workspace.call("file", "file.list", {"path": deep})) == "ok"
        assert verdict(workspace.call("file", "file.read", {"path": f"{deep}/{deep}/deepest"})) == BAD


def test_character_device_is_refused(arena: Arena) -> None:
    try:
        os.mknod(arena.root / "zero", 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("making a device takes privileges")
    with open_arena(arena) as workspace:
        result = workspace.call("file", "file.read", {"path": "zero"})
    assert result.error is not None
    assert result.error.message == "'zero' is a character device, not a regular file"


def test_huge_sparse_file_is_read_by_page_and_not_as_a_whole(arena: Arena) -> None:
    with open(arena.root / "sparse", "r+b") as file:
        file.write(b"first\nsecond\n")
        file.seek(1 << 39)
        file.write(b"\nmiddle\n")
    with open_arena(arena) as workspace:
        head = workspace.call("file", "file.read", {"path": "sparse", "limit": 2}).output
        middle = workspace.call("file", "file.read", {"path": "sparse", "offset": 4, "limit": 1}).output
    assert head == {"content": "     1\tfirst\n     2\tsecond", "total_lines": 5, "truncated": True}
    assert middle == {"content": "     4\tmiddle", "total_lines": 5, "truncated": True}
    boundary = FsBoundary(arena.root)
    boundary.close()
    with open_arena(arena) as workspace, pytest.raises(TooLarge):
        workspace._services.reader.read("sparse")


def test_replaced_root_gives_warning_and_original_is_written(arena: Arena) -> None:
    with open_arena(arena) as workspace:
        arena.root.rename(arena.top / "workspace.moved")
        arena.root.symlink_to(arena.outside)
        result = workspace.call("file", "file.write", {"path": "secret.txt", "content": "mine"})
        assert result.success
        assert result.warnings == ["the workspace directory was replaced; this session still uses the original one"]
    assert (arena.top / "workspace.moved" / "secret.txt").read_text() == "mine"
    assert (arena.outside / "secret.txt").read_text() == SECRET


def test_boundary_root_that_is_not_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "missing"):
        with pytest.raises(PathFault):
            FsBoundary(tmp_path / name)


def test_path_fault_shows_path_as_caller_wrote_it(arena: Arena) -> None:
    with pytest.raises(BadPath) as caught:
        FsBoundary(arena.root).open_file("lone\ud800")
    assert (caught.value.path, caught.value.why) == ("lone\\ud800", "not_text")
