"""The rows in which the page shows a diff."""

from handrail.surfaces.page.diff_rows import Diff

HEAD = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n"


def test_diff_rows_put_changed_lines_beside_each_other() -> None:
    diff = Diff.of(f"{HEAD}@@ -1,3 +1,2 @@\n same\n-old\n-gone\n+new\n")
    assert diff.split[-3:] == [[" ", 1, "same", 1, "same"], ["~", 2, "old", 2, "new"], ["-", 3, "gone", 0, ""]]
    assert (diff.added, diff.removed, diff.files) == (1, 2, ["a.txt"])


def test_diff_rows_split_a_long_line_and_lose_no_character() -> None:
    line = "".join(chr(97 + n % 26) for n in range(2500))
    diff = Diff.of(f"{HEAD}@@ -1 +1,2 @@\n-{line}\n+{line}!\n+short\n")
    for kind, column in (("-", 2), ("+", 4)):
        rows = [row for row in diff.unified if row[0] == kind]
        assert "".join(str(row[column]) for row in rows).startswith(line)
        assert [row[column - 1] for row in rows][:3] == [1, -1, -1]
    assert (diff.added, diff.removed) == (2, 1)
    assert [row[0] for row in diff.split if str(row[0]) in "~+-"] == ["~", "~", "~", "+"]
