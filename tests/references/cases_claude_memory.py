"""Lists the calls that `BetaLocalFilesystemMemoryTool` and `memory` answer alike, but for the listed differences."""

from typing import Any

from references.comparing import ReferenceCase


def _case(name: str, *calls: dict[str, Any]) -> ReferenceCase:
    return ReferenceCase(f"memory {name}", {}, [("memory", call) for call in calls])


def _create(path: str, text: str) -> dict[str, Any]:
    return {"command": "create", "path": f"/memories/{path}", "file_text": text}


def _view(path: str, *view_range: int) -> dict[str, Any]:
    asked: dict[str, Any] = {"command": "view", "path": f"/memories/{path}".rstrip("/")}
    return asked | ({"view_range": [*view_range]} if view_range else {})


def _replace(path: str, old: str, new: str) -> dict[str, Any]:
    return {"command": "str_replace", "path": f"/memories/{path}", "old_str": old, "new_str": new}


def _insert(path: str, line: int, text: str) -> dict[str, Any]:
    return {"command": "insert", "path": f"/memories/{path}", "insert_line": line, "insert_text": text}


def _rename(old: str, new: str) -> dict[str, Any]:
    return {"command": "rename", "old_path": f"/memories/{old}", "new_path": f"/memories/{new}"}


def _delete(path: str) -> dict[str, Any]:
    return {"command": "delete", "path": f"/memories/{path}"}


_SEVEN = "1\n2\n3\n4\n5\n6\n7\n"
CASES = [
    _case("empty", _view("")),
    _case("create and view", _create("a.md", "one\ntwo\n"), _view("a.md")),
    _case("list", _create("a.md", "hello"), _create("d/e/f.md", "x" * 1536), _create(".h", "x"), _view("")),
    _case("list below", _create("d/e/f.md", "x"), _view("d")),
    _case("range", _create("a", _SEVEN), _view("a", 2, 3), _view("a", 6, -1), _view("a", 0, 2), _view("a", 20, 30)),
    _case("view missing", _view("none")),
    _case("create again", _create("a", "x"), _create("a", "y")),
    _case("replace", _create("a", _SEVEN), _replace("a", "4", "four"), _view("a")),
    _case("replace first", _create("a", _SEVEN), _replace("a", "1", "one")),
    _case("replace lines", _create("a", _SEVEN), _replace("a", "3\n4\n", "x\ny\nz\n"), _view("a")),
    _case("replace many", _create("a", "x\ny\nx\n"), _replace("a", "x", "z")),
    _case("replace absent", _create("a", "x"), _replace("a", "y", "z")),
    _case("replace missing", _replace("none", "y", "z")),
    _case("replace directory", _create("d/a", "x"), _replace("d", "x", "y")),
    _case("insert start", _create("a", "b\n"), _insert("a", 0, "a"), _view("a")),
    _case("insert end", _create("a", "a\nb"), _insert("a", 2, "c\n\n"), _view("a")),
    _case("insert in empty", _create("a", ""), _insert("a", 0, "x"), _view("a")),
    _case("insert beyond", _create("a", "a\nb\n"), _insert("a", 3, "c")),
    _case("insert missing", _insert("none", 0, "c")),
    _case("delete file", _create("a", "x"), _delete("a"), _view("a")),
    _case("delete directory", _create("d/e/a", "x"), _delete("d"), _view("")),
    _case("delete missing", _delete("none")),
    _case("delete root", {"command": "delete", "path": "/memories"}),
    _case("rename file", _create("a", "x"), _rename("a", "d/b"), _view("d/b")),
    _case("rename directory", _create("d/e/a", "x"), _rename("d", "n/m"), _view("n/m/e/a")),
    _case("rename over", _create("a", "x"), _create("b", "y"), _rename("a", "b")),
    _case("rename missing", _rename("none", "b")),
    _case("rename root", {"command": "rename", "old_path": "/memories", "new_path": "/memories/x"}),
    _case("path elsewhere", {"command": "view", "path": "/etc/passwd"}),
    _case("path relative", {"command": "view", "path": "notes"}),
    _case("path above", {"command": "view", "path": "/memories/../x"}),
    _case("path encoded", _create("%2e%2e%2fx", "y"), _view("")),
    _case("path with the same beginning", {"command": "create", "path": "/memories-x/a", "file_text": "y"}),
]
