from handrail import ToolResult
from handrail.surfaces.cli.render import human
from handrail.tools.messages import ToolError


def test_human_success_has_catalogue_format() -> None:
    result = ToolResult("create_file", True, "Created file: hello.py (125 bytes)", ["hello.py"], 5.0)
    assert human(result, "/home/user/project") == (
        "✓ Created file: hello.py (125 bytes)\n  Location: /home/user/project/hello.py\n  Time: 5ms"
    )


def test_human_error_has_suggestion_and_code() -> None:
    error = ToolError("file_exists", "File 'a' already exists", "Choose another name")
    result = ToolResult("create_file", False, "Error: File 'a' already exists", [], 12_345.0, error=error)
    assert human(result, "/") == (
        "✗ Error: File 'a' already exists\n  Suggestion: Choose another name\n  Code: file_exists\n  Time: 12.3s"
    )


def test_human_structured_output_is_printed_by_key() -> None:
    output = {
        "content": "     1\tone\n     2\ttwo",
        "matches": [{"path": "a.py", "line": 3}, "plain"],
        "none": [],
        "truncated": False,
    }
    result = ToolResult("file.read", True, output, [], 0.04, warnings=["careful"])
    assert human(result, "/w") == (
        "✓ file.read\n"
        "  content:\n"
        "         1\tone\n"
        "         2\ttwo\n"
        "  matches:\n"
        "    - path: a.py, line: 3\n"
        "    - plain\n"
        "  none: []\n"
        "  truncated: false\n"
        "  Warning: careful\n"
        "  Time: 0.0ms"
    )


def test_human_escapes_terminal_controls() -> None:
    result = ToolResult("t", True, "red \x1b[31m back \u202e end \x9b2J \udcff\n", ["a"], 2.0)
    assert human(result, "/w") == ("✓ red \\x1b[31m back \\u202e end \\x9b2J \\xff\n  Location: /w/a\n  Time: 2ms")
