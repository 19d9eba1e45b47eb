"""Tests the first lines of a question over MCP: Claude Code shows three of them."""

import pytest

from handrail.surfaces.mcp.question_outline import outlined

HUNK = ["diff --git a/a b/a", "--- a/a", "+++ b/a", "@@ -1,2 +1,2 @@", " one", "-two", "+2"]


@pytest.mark.parametrize(
    ("lines", "targets", "shown"),
    [
        (HUNK, ("a",), ["Change a at line 2", "-two", "+2"]),
        (HUNK, ("x/a",), ["Change x/a at line 2", "-two", "+2"]),
        ([*HUNK, "@@ -9 +9 @@", "-x", "+y"], ("a",), ["Change a at line 2", "-two", "+2", "@@ -9 +9 @@", "-x", "+y"]),
        (
            ["diff --git a/b b/b", "new file mode 100755", "--- /dev/null", "+++ b/b", "@@ -0,0 +1 @@", "+hi"],
            ("b",),
            ["Create b", "new file mode 100755", "+hi"],
        ),
        (
            [
                *HUNK,
                "diff --git a/b b/b",
                "deleted file mode 100644",
                "--- a/b",
                "+++ /dev/null",
                "@@ -1 +0,0 @@",
                "-x",
            ],
            ("a", "b"),
            ["Change a at line 2", "-two", "+2", "Delete b", "-x"],
        ),
        (["diff --git a/a b/a", "old mode 100644", "new mode 100755"], (), None),
        (["new directory d"], ("d",), ["new directory d"]),
        (
            ["Command: curl x", "Programs: curl", "More rights, for this command only: network", "Careful: odd"],
            (),
            ["More rights, for this command only: network", "Careful: odd", "Command: curl x", "Programs: curl"],
        ),
    ],
    ids=["context", "target", "two hunks", "new", "two files", "mode", "directory", "warnings"],
)
def test_outlined_puts_gist_first(lines: list[str], targets: tuple[str, ...], shown: list[str] | None) -> None:
    expected = shown or ["Change a/a b/a", "old mode 100644", "new mode 100755"]
    assert outlined(lines, targets) == expected


@pytest.mark.parametrize("text", ["diff --git a/x b/x", "Careful: nothing", "--- a/x", "+++ b/x", "@@ -1 +1 @@"])
def test_outlined_content_cannot_look_like_header(text: str) -> None:
    lines = ["diff --git a/a b/a", "--- a/a", "+++ b/a", "@@ -1,2 +1,2 @@", f" {text}", f"-{text}", f"+{text}!"]
    assert outlined(lines, ("a",)) == ["Change a at line 2", f"-{text}", f"+{text}!"]
