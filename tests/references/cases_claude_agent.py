"""Lists the calls that the agent toolset and `claude-agent` answer alike, but for the listed differences."""

from references.comparing import ReferenceCase

_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01"
_LINES = "".join(f"line {n}\n" for n in range(1, 10))


def _case(name: str, files: dict[str, str | bytes], *calls: tuple[str, dict[str, object]]) -> ReferenceCase:
    return ReferenceCase(name, files, list(calls))


CASES = [
    _case("read whole", {"a.txt": "one\r\n\ttwo\n"}, ("read", {"file_path": "a.txt"})),
    _case("read absolute", {"d/a.txt": "x"}, ("read", {"file_path": "{root}/d/a.txt"})),
    _case("read empty", {"a.txt": ""}, ("read", {"file_path": "a.txt"})),
    *(
        _case(
            f"read range {first} {last}",
            {"a.txt": _LINES},
            ("read", {"file_path": "a.txt", "view_range": [first, last]}),
        )
        for first, last in ((2, 3), (8, 99), (9, 9), (10, 10), (12, 13), (3, -1), (1, 0), (5, 2), (0, 2), (-3, 2))
    ),
    _case("read range of one number", {"a.txt": "x"}, ("read", {"file_path": "a.txt", "view_range": [1]})),
    _case("read without final newline", {"a.txt": "a\nb"}, ("read", {"file_path": "a.txt", "view_range": [1, 2]})),
    _case("read missing", {}, ("read", {"file_path": "none"})),
    _case("read directory", {"d/": ""}, ("read", {"file_path": "d"})),
    _case("read below a file", {"a": "x"}, ("read", {"file_path": "a/b"})),
    _case("read outside", {}, ("read", {"file_path": "../x"})),
    _case("read absolute outside", {}, ("read", {"file_path": "/etc/hostname"})),
    _case("read link outside", {"out": "-> /etc/hostname"}, ("read", {"file_path": "out"})),
    _case("read link inside", {"a": "x", "way": "-> a"}, ("read", {"file_path": "way"})),
    _case("read loop", {"loop": "-> loop"}, ("read", {"file_path": "loop"})),
    _case("read binary", {"a.bin": b"\xff\x00"}, ("read", {"file_path": "a.bin"})),
    _case("read large", {"a": "x" * 262145}, ("read", {"file_path": "a"})),
    _case("read large line", {"a": "x" * 262145}, ("read", {"file_path": "a", "view_range": [1, 1]})),
    _case("read large range", {"a": "line\n" * 60000}, ("read", {"file_path": "a", "view_range": [1, 59999]})),
    _case("read part of large", {"a": "line\n" * 60000}, ("read", {"file_path": "a", "view_range": [59999, 60000]})),
    _case("read image", {"a.png": _PNG}, ("read", {"file_path": "a.png"})),
    _case("read image range", {"a.png": _PNG}, ("read", {"file_path": "a.png", "view_range": [1, 2]})),
    _case("read pdf", {"a.pdf": b"%PDF-1.7"}, ("read", {"file_path": "a.pdf"})),
    _case("read text named png", {"a.png": "hello"}, ("read", {"file_path": "a.png"})),
    _case("write new", {}, ("write", {"file_path": "d/e/a.txt", "content": "one\r\n"})),
    _case("write over", {"a": "old"}, ("write", {"file_path": "a", "content": ""})),
    _case("write umlauts", {}, ("write", {"file_path": "a", "content": "äöü"})),
    _case("write outside", {}, ("write", {"file_path": "../a", "content": "x"})),
    _case("write directory", {"d/": ""}, ("write", {"file_path": "d", "content": "x"})),
    _case("write below a file", {"a": "x"}, ("write", {"file_path": "a/b", "content": "x"})),
    _case("write through link", {"a": "x", "way": "-> a"}, ("write", {"file_path": "way", "content": "y"})),
    _case("write dangling link", {"way": "-> none"}, ("write", {"file_path": "way", "content": "y"})),
    _case("edit once", {"a": "one two"}, ("edit", {"file_path": "a", "old_string": "two", "new_string": "2"})),
    _case("edit many", {"a": "x x"}, ("edit", {"file_path": "a", "old_string": "x", "new_string": "y"})),
    _case(
        "edit all",
        {"a": "x x"},
        ("edit", {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True}),
    ),
    _case("edit overlapping", {"a": "aaa"}, ("edit", {"file_path": "a", "old_string": "aa", "new_string": "b"})),
    _case("edit absent", {"a": "x"}, ("edit", {"file_path": "a", "old_string": "y", "new_string": "z"})),
    _case("edit empty text", {"a": "x"}, ("edit", {"file_path": "a", "old_string": "", "new_string": "z"})),
    _case("edit line ends", {"a": "a\r\nb"}, ("edit", {"file_path": "a", "old_string": "a\nb", "new_string": "x\ny"})),
    _case("edit tabs", {"a": "\ta\n\tb"}, ("edit", {"file_path": "a", "old_string": "b", "new_string": "c"})),
    _case("edit missing", {}, ("edit", {"file_path": "a", "old_string": "b", "new_string": "c"})),
    _case("edit directory", {"d/": ""}, ("edit", {"file_path": "d", "old_string": "b", "new_string": "c"})),
    _case("edit binary", {"a": b"\xffb"}, ("edit", {"file_path": "a", "old_string": "b", "new_string": "c"})),
    _case("edit large", {"a": "b" * 262145}, ("edit", {"file_path": "a", "old_string": "b", "new_string": "c"})),
    _case("glob files", {"a.py": "", "b.txt": ""}, ("glob", {"pattern": "*.py"})),
    _case("glob deep", {"d/e/a.py": ""}, ("glob", {"pattern": "**/*.py"})),
    _case("glob in directory", {"d/a.py": "", "b.py": ""}, ("glob", {"pattern": "*.py", "path": "d"})),
    _case("glob nothing", {}, ("glob", {"pattern": "*"})),
    _case("glob absolute", {}, ("glob", {"pattern": "/etc/*"})),
    _case("glob above", {}, ("glob", {"pattern": "../*"})),
    _case("glob hidden", {".env": ""}, ("glob", {"pattern": "*"})),
    _case("glob directories", {"d/a.py": ""}, ("glob", {"pattern": "*"})),
    _case("glob braces", {"a.py": ""}, ("glob", {"pattern": "*.{py,txt}"})),
    _case("glob outside", {}, ("glob", {"pattern": "*", "path": ".."})),
    _case("glob in missing", {}, ("glob", {"pattern": "*", "path": "none"})),
    _case("grep lines", {"a.txt": "one\ntwo\none\n"}, ("grep", {"pattern": "one"})),
    _case("grep one file", {"a.txt": "one\n", "b.txt": "one\n"}, ("grep", {"pattern": "one", "path": "a.txt"})),
    _case("grep nothing", {"a": "x"}, ("grep", {"pattern": "y"})),
    _case("grep binary", {"a": b"one\x00"}, ("grep", {"pattern": "one"})),
    _case("grep outside", {}, ("grep", {"pattern": "x", "path": "/etc"})),
    _case("grep in missing", {}, ("grep", {"pattern": "x", "path": "none"})),
    _case("grep wrong pattern", {}, ("grep", {"pattern": "("})),
    _case("grep much", {"a": "some text that is long\n" * 9000}, ("grep", {"pattern": "text"})),
    _case("grep ignored", {".gitignore": "a\n", ".git/": "", "a": "one"}, ("grep", {"pattern": "one"})),
    _case("grep long line", {"a": "one" + "x" * 3000}, ("grep", {"pattern": "one"})),
    _case("bash output", {}, ("bash", {"command": "echo one; echo two >&2"})),
    _case(
        "bash remembers", {"d/": ""}, ("bash", {"command": "cd d; X=1"}), ("bash", {"command": "echo $X ${PWD##*/}"})
    ),
    _case("bash fails", {}, ("bash", {"command": "echo out; false"})),
    _case("bash fails silently", {}, ("bash", {"command": "false"})),
    _case("bash without command", {}, ("bash", {})),
    _case(
        "bash restart",
        {},
        ("bash", {"command": "X=1"}),
        ("bash", {"restart": True}),
        ("bash", {"command": "echo [$X]"}),
    ),
    _case("bash timeout", {}, ("bash", {"command": "sleep 60", "timeout_ms": 300}), ("bash", {"command": "echo x"})),
    _case("bash input", {}, ("bash", {"command": "cat; echo done"})),
    _case("bash much", {}, ("bash", {"command": "yes 123456789 | head -n 20000"})),
    _case("bash ends", {}, ("bash", {"command": "echo bye; exit 3"})),
    _case("bash ends silently", {}, ("bash", {"command": "exit 3"})),
    _case("bash writes", {}, ("bash", {"command": "echo x > new.txt"})),
]
