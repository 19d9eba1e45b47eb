"""Lists the calls that the tools of Gemini CLI and `gemini-3` answer alike, but for the listed differences."""

from typing import Any

from references.comparing import ReferenceCase

Files = dict[str, str | bytes]

_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00"
_NINE = "".join(f"line {n}\n" for n in range(1, 10))
_FORTY = "".join(f"line {n}\n" for n in range(1, 41))
_TREE: Files = {"a.py": "one\nTwo\nthree\n", "src/b.py": "two\n", "src/c.txt": "two one\n"}


def _cases(tool: str, *cases: tuple[str, Files, dict[str, Any]]) -> list[ReferenceCase]:
    return [ReferenceCase(f"{tool} {name}", files, [(tool, params)]) for name, files, params in cases]


def _edit(old: str, new: str, path: str = "a.py", **more: object) -> dict[str, Any]:
    return {"file_path": path, "instruction": "Change it.", "old_string": old, "new_string": new, **more}


def _write(path: str, content: str) -> dict[str, Any]:
    return {"file_path": path, "content": content}


_LIST = _cases(
    "list_directory",
    ("root", _TREE, {"dir_path": "."}),
    ("absolute", _TREE, {"dir_path": "{root}/src"}),
    ("relative", _TREE, {"dir_path": "src"}),
    ("final slash", _TREE, {"dir_path": "src/"}),
    ("order", {"b": "", "a": "", "B": "", "z/x": "", "é": "", "_": ""}, {"dir_path": "."}),
    ("hidden", {".env.sample": "x", "a": "x"}, {"dir_path": "."}),
    ("empty", {"d/": ""}, {"dir_path": "d"}),
    ("ignore", _TREE, {"dir_path": ".", "ignore": ["*.py"]}),
    ("all ignored", _TREE, {"dir_path": "src", "ignore": ["*"]}),
    ("ignored by git", {".git/": "", ".gitignore": "*.log\n", "a.log": "x", "b": "x"}, {"dir_path": "."}),
    ("link", {"a": "xyz", "way": "-> a", "broken": "-> none"}, {"dir_path": "."}),
    ("missing", {}, {"dir_path": "none"}),
    ("file", {"a": "x"}, {"dir_path": "a"}),
    ("outside", {}, {"dir_path": "../x"}),
    ("empty path", _TREE, {"dir_path": ""}),
    ("without path", {}, {}),
    ("number as path", {}, {"dir_path": 3}),
)

_READ = _cases(
    "read_file",
    ("whole", {"a": _NINE}, {"file_path": "a"}),
    ("absolute", {"d/a": "x"}, {"file_path": "{root}/d/a"}),
    ("empty", {"a": ""}, {"file_path": "a"}),
    ("without final newline", {"a": "one\ntwo"}, {"file_path": "a"}),
    ("line ends", {"a": "one\r\ntwo\r\n"}, {"file_path": "a"}),
    ("byte order mark", {"a": b"\xef\xbb\xbfone\n"}, {"file_path": "a"}),
    ("range", {"a": "1\n2\n3\n4"}, {"file_path": "a", "start_line": 2, "end_line": 3}),
    ("range before a final newline", {"a": _NINE}, {"file_path": "a", "start_line": 2, "end_line": 3}),
    ("start", {"a": "1\n2\n3\n4"}, {"file_path": "a", "start_line": 3}),
    ("end", {"a": "1\n2\n3\n4"}, {"file_path": "a", "end_line": 2}),
    ("whole range", {"a": "1\n2\n3\n4"}, {"file_path": "a", "start_line": 1, "end_line": 4}),
    ("end beyond", {"a": "1\n2\n3\n4"}, {"file_path": "a", "start_line": 4, "end_line": 99}),
    ("start beyond", {"a": "1\n2"}, {"file_path": "a", "start_line": 9}),
    ("reversed range", {"a": "1\n2"}, {"file_path": "a", "start_line": 2, "end_line": 1}),
    ("start zero", {"a": "1\n2"}, {"file_path": "a", "start_line": 0}),
    ("start as text", {"a": "1\n2"}, {"file_path": "a", "start_line": "one"}),
    ("many lines", {"a": "x\n" * 2000 + "y"}, {"file_path": "a"}),
    ("long line", {"a": "x" * 2500 + "\ny"}, {"file_path": "a"}),
    ("large", {"a": "x" * (20 * 1024 * 1024 + 1)}, {"file_path": "a"}),
    ("binary", {"d/a.bin": b"\x00\x01\x02\xff"}, {"file_path": "d/a.bin"}),
    ("image", {"a.png": _PNG}, {"file_path": "a.png"}),
    ("pdf", {"a.pdf": b"%PDF-1.7\n"}, {"file_path": "a.pdf"}),
    ("svg", {"a.svg": "<svg/>"}, {"file_path": "a.svg"}),
    ("missing", {}, {"file_path": "none"}),
    ("directory", {"d/": ""}, {"file_path": "d"}),
    ("below a file", {"a": "x"}, {"file_path": "a/b"}),
    ("outside", {}, {"file_path": "../x"}),
    ("absolute outside", {}, {"file_path": "/etc/hostname"}),
    ("link", {"a": "x", "way": "-> a"}, {"file_path": "way"}),
    ("ignored by git", {".git/": "", ".gitignore": "*.log\n", "a.log": "x"}, {"file_path": "a.log"}),
    ("without path", {}, {}),
)

_READ_MANY = _cases(
    "read_many_files",
    ("glob", _TREE, {"include": ["**/*.py"]}),
    ("path", _TREE, {"include": ["src/c.txt"]}),
    ("two", _TREE, {"include": ["src/c.txt", "a.py"]}),
    ("directory", _TREE, {"include": ["src/"]}),
    ("exclude", _TREE, {"include": ["**/*"], "exclude": ["**/*.py"]}),
    ("none", _TREE, {"include": ["*.rs"]}),
    ("binary", {"a.bin": b"\x00\x01", "b.txt": "x"}, {"include": ["*"]}),
    ("binary alone", {"a.dat": b"\x00\x01\x02\xff"}, {"include": ["*.dat"]}),
    ("image", {"a.png": _PNG}, {"include": ["*.png"]}),
    ("image by the way", {"a.png": _PNG, "b.txt": "x"}, {"include": ["*"]}),
    ("many lines", {"a": "x\n" * 2000 + "y"}, {"include": ["a"]}),
    ("case", {"A.TXT": "x"}, {"include": ["*.txt"]}),
    ("hidden", {".config": "x"}, {"include": ["*"]}),
    ("dependencies", {"node_modules/a.js": "x", "b.js": "y"}, {"include": ["**/*.js"]}),
    ("dependencies too", {"node_modules/a.js": "x"}, {"include": ["**/*.js"], "useDefaultExcludes": False}),
    (
        "ignored by git",
        {".git/": "", ".gitignore": "*.log\n", "a.log": "x", "b.txt": "y"},
        {"include": ["*.log", "*.txt"]},
    ),
    ("outside", {}, {"include": ["../*"]}),
    ("empty list", {}, {"include": []}),
    ("empty glob", {}, {"include": [""]}),
    ("without globs", {}, {}),
)

_WRITE = _cases(
    "write_file",
    ("new", {}, _write("d/e/a.py", "one\ntwo\n")),
    ("absolute", {}, _write("{root}/a.py", "one")),
    ("over", {"a.py": _NINE}, _write("a.py", _NINE.replace("5", "five"))),
    ("far apart", {"a.py": _FORTY}, _write("a.py", _FORTY.replace("line 2\n", "2\n").replace("line 39\n", "39\n"))),
    ("empty", {"a.py": "x\n"}, _write("a.py", "")),
    ("same", {"a.py": "x\n"}, _write("a.py", "x\n")),
    ("line ends", {"a.py": "x\r\ny\r\n"}, _write("a.py", "z\ny\n")),
    ("backslashes", {}, _write("a.py", "a\\n\\\\ $1\n")),
    ("umlauts", {}, _write("a.py", "äöü\n")),
    ("placeholder", {}, _write("a.py", "def f():\n(rest of methods ...)\n")),
    ("directory", {"d/": ""}, _write("d", "x")),
    ("below a file", {"a": "x"}, _write("a/b", "x")),
    ("outside", {}, _write("../a", "x")),
    ("through link", {"a": "x", "way": "-> a"}, _write("way", "y")),
    ("without content", {}, {"file_path": "a"}),
    ("number as content", {}, {"file_path": "a", "content": 3}),
    ("empty path", {}, _write("", "x")),
)

_REPLACE = _cases(
    "replace",
    ("once", {"a.py": _NINE}, _edit("line 5", "five")),
    ("absolute", {"a.py": _NINE}, _edit("line 5", "five", "{root}/a.py")),
    ("long file", {"a.py": _FORTY}, _edit("line 20\n", "20\n21\n")),
    ("first line", {"a.py": _FORTY}, _edit("line 1\nline 2\n", "")),
    ("twice", {"a.py": "x\nx\n"}, _edit("x", "y")),
    ("all", {"a.py": "x\nx\n"}, _edit("x", "y", allow_multiple=True)),
    ("all of one", {"a.py": "x\n"}, _edit("x", "y", allow_multiple=True)),
    ("all far apart", {"a.py": "x\n" + _FORTY + "x\n"}, _edit("x", "y", allow_multiple=True)),
    ("absent", {"a.py": "x\n"}, _edit("nowhere at all", "y")),
    ("same", {"a.py": "x\n"}, _edit("x", "x")),
    ("create", {}, _edit("", "one\n", "d/new.py")),
    ("create again", {"a.py": "x\n"}, _edit("", "one\n")),
    ("missing", {}, _edit("x", "y", "none.py")),
    ("directory", {"d/": ""}, _edit("x", "y", "d")),
    ("other indentation", {"a.py": "def f():\n    return 1\n"}, _edit("\treturn 1", "\treturn 2")),
    ("other spaces", {"a.py": "f( a,b )\n"}, _edit("f(a,b)", "g(a,b)")),
    ("line ends", {"a.py": "one\r\ntwo\r\nthree\r\n"}, _edit("one\ntwo", "1\n2")),
    ("final newline", {"a.py": "one\ntwo"}, _edit("two", "two\n")),
    ("dollar", {"a.py": "x\n"}, _edit("x", "$1 $& \\1")),
    ("placeholder", {"a.py": "x\n"}, _edit("x", "(rest of methods ...)")),
    ("outside", {}, _edit("x", "y", "../a")),
    ("without instruction", {"a.py": "x\n"}, {"file_path": "a.py", "old_string": "x", "new_string": "y"}),
    ("empty path", {}, _edit("x", "y", "")),
)

_GREP = _cases(
    "grep_search",
    ("one", {"a.py": _FORTY}, {"pattern": "line 20$"}),
    ("few", {"a.py": _FORTY}, {"pattern": "line 2[05]$"}),
    ("three in two files", _TREE, {"pattern": "two"}),
    ("many", {"a.py": _NINE}, {"pattern": "line"}),
    ("case", _TREE, {"pattern": "Two", "case_sensitive": True}),
    ("literal", {"a": "a.b\nacb\n"}, {"pattern": "a.b", "fixed_strings": True}),
    ("context", {"a.py": _NINE}, {"pattern": "line 5", "context": 1}),
    ("no context", {"a.py": _NINE}, {"pattern": "line 5", "context": 0}),
    ("before", {"a.py": _NINE}, {"pattern": "line 5", "before": 2}),
    ("after", {"a.py": _NINE}, {"pattern": "line 5", "after": 1}),
    ("names", _TREE, {"pattern": "two", "names_only": True}),
    ("include", _TREE, {"pattern": "two", "include_pattern": "*.txt"}),
    ("include directory", _TREE, {"pattern": "two", "include_pattern": "src/**"}),
    ("exclude", _TREE, {"pattern": "two", "exclude_pattern": "one", "context": 0}),
    ("each file", {"a.py": "x\nx\nx\n"}, {"pattern": "x", "max_matches_per_file": 2, "context": 0}),
    ("total", {"a.py": "x\nx\nx\nx\nx\n"}, {"pattern": "x", "total_max_matches": 4}),
    ("directory", _TREE, {"pattern": "two", "dir_path": "src"}),
    ("file", _TREE, {"pattern": "two", "dir_path": "src/c.txt"}),
    ("nothing", _TREE, {"pattern": "nowhere"}),
    ("nothing included", _TREE, {"pattern": "two", "include_pattern": "*.rs"}),
    ("long line", {"a": "needle" + "x" * 2500 + "\n"}, {"pattern": "needle"}),
    ("hidden", {".config": "two\n"}, {"pattern": "two"}),
    ("logs", {"a.log": "two\n"}, {"pattern": "two"}),
    ("ignored by git", {".git/": "", ".gitignore": "*.out\n", "a.out": "two\n"}, {"pattern": "two"}),
    (
        "ignored too",
        {".git/": "", ".gitignore": "*.out\n", "a.out": "two\n"},
        {"pattern": "two", "no_ignore": True, "context": 0},
    ),
    ("wrong pattern", {}, {"pattern": "["}),
    ("wrong exclude", _TREE, {"pattern": "two", "exclude_pattern": "["}),
    ("missing", {}, {"pattern": "x", "dir_path": "none"}),
    ("outside", {}, {"pattern": "x", "dir_path": "../x"}),
    ("zero matches", {}, {"pattern": "x", "total_max_matches": 0}),
    ("without pattern", {}, {}),
)

_GLOB = _cases(
    "glob",
    ("one", {"a.py": "x", "b.txt": "y"}, {"pattern": "*.py"}),
    ("below", _TREE, {"pattern": "**/*.txt"}),
    ("directory", _TREE, {"pattern": "*.txt", "dir_path": "src"}),
    ("name alone", _TREE, {"pattern": "b.py"}),
    ("absolute", _TREE, {"pattern": "{root}/src/*.txt"}),
    ("case", {"A.PY": "x"}, {"pattern": "*.py"}),
    ("exact case", {"A.PY": "x"}, {"pattern": "*.py", "case_sensitive": True}),
    ("braces", {"a.py": "x"}, {"pattern": "*.{py,rs}"}),
    ("brackets in a name", {"[a].py": "x"}, {"pattern": "[a].py"}),
    ("hidden", {".config": "x"}, {"pattern": "*"}),
    ("dependencies", {"node_modules/a.js": "x"}, {"pattern": "**/*.js"}),
    ("ignored by git", {".git/": "", ".gitignore": "*.log\n", "a.log": "x"}, {"pattern": "*.log"}),
    (
        "ignored too",
        {".git/": "", ".gitignore": "*.log\n", "a.log": "x"},
        {"pattern": "*.log", "respect_git_ignore": False},
    ),
    ("nothing", _TREE, {"pattern": "*.rs"}),
    ("missing", {}, {"pattern": "*", "dir_path": "none"}),
    ("file", {"a": "x"}, {"pattern": "*", "dir_path": "a"}),
    ("outside", {}, {"pattern": "*", "dir_path": "../x"}),
    ("empty pattern", {}, {"pattern": ""}),
    ("spaces as pattern", {}, {"pattern": "  "}),
    ("without pattern", {}, {}),
)

_RUN = _cases(
    "run_shell_command",
    ("output", {}, {"command": "echo one; echo two >&2"}),
    ("silent", {}, {"command": "true"}),
    ("fails", {}, {"command": "echo x; exit 3"}),
    ("fails silently", {}, {"command": "exit 3"}),
    ("signal", {}, {"command": "kill -9 $$"}),
    ("directory", {"d/": ""}, {"command": "touch made", "dir_path": "d"}),
    ("absolute directory", {"d/": ""}, {"command": "touch made", "dir_path": "{root}/d"}),
    ("missing directory", {}, {"command": "true", "dir_path": "none"}),
    ("outside", {}, {"command": "true", "dir_path": "../x"}),
    ("pipe", {}, {"command": "printf 'b\\na\\n' | sort"}),
    ("colours", {}, {"command": "printf '\\033[31mred\\033[0m\\n'"}),
    ("blank lines", {}, {"command": "printf '\\n\\n x \\n\\n'"}),
    ("substitution", {}, {"command": "echo $(echo x)"}),
    ("variable", {}, {"command": "NAME=x; echo $NAME ${#NAME} $((1 + 2))"}),
    ("empty", {}, {"command": ""}),
    ("spaces", {}, {"command": "   "}),
    ("without command", {}, {}),
)

CASES = [*_LIST, *_READ, *_READ_MANY, *_WRITE, *_REPLACE, *_GREP, *_GLOB, *_RUN]
