"""Lists the diffs that `openai-agents` and `apply_patch` apply alike, but for the listed differences."""

from typing import NamedTuple


class DiffCase(NamedTuple):
    """Holds a diff of one file; without `before`, it creates the file."""

    name: str
    before: str | None
    diff: str


_CLASS = "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n"
CASES = [
    DiffCase("update anchor", "a\nb\nc\nb\n", "@@ c\n-b\n+B"),
    DiffCase(
        "update anchor of a class", _CLASS, "@@ class B:\n     def f(self):\n-        return 1\n+        return 2"
    ),
    DiffCase("update two anchors", _CLASS, "@@ class B:\n@@     def f(self):\n-        return 1\n+        return 2"),
    DiffCase("update missing anchor", "a\nb\n", "@@ nowhere\n-b\n+B"),
    DiffCase("update context", "a\nb\nc\n", " a\n-b\n+B\n c"),
    DiffCase("update without mark", "a\nb\nc\n", "-b\n+B"),
    DiffCase("update two sections", "a\nb\nc\nd\n", "@@\n-a\n+A\n@@\n-d\n+D"),
    DiffCase("update sections in wrong order", "a\nb\nc\nd\n", "@@\n-d\n+D\n@@\n-a\n+A"),
    DiffCase("update insert", "a\nb\n", " a\n+x\n b"),
    DiffCase("update insert at start", "a\nb\n", "+x\n a"),
    DiffCase("update insert at end", "a\nb\n", " b\n+x"),
    DiffCase("update insert at end of file", "a\nb\n", "@@\n b\n+x\n*** End of File"),
    DiffCase("update only new lines", "a\nb\n", "@@\n+x"),
    DiffCase("update delete", "a\nb\nc\n", " a\n-b\n c"),
    DiffCase("update delete all", "a\nb\n", "-a\n-b"),
    DiffCase("update end of file", "x\ny\nx\n", "@@\n-x\n+z\n*** End of File"),
    DiffCase("update without final newline", "a\nb", "-b\n+B"),
    DiffCase("update trailing space", "a  \nb\n", "-a\n+A\n b"),
    DiffCase("update leading space", "    a\nb\n", "-a\n+A\n b"),
    DiffCase("update typography", "it\u2019s\nb\n", "-it's\n+it is\n b"),
    DiffCase("update umlauts", "ä\nö\n", "-ä\n+Ä"),
    DiffCase("update CRLF", "a\r\nb\r\n", "-a\n+A\n b"),
    DiffCase("update CRLF diff", "a\nb\n", "-a\r\n+A\r\n b\r\n"),
    DiffCase("update twice", "x\nx\n", "-x\n+y"),
    DiffCase("update nowhere", "a\n", "-z\n+y"),
    DiffCase("update other context", "a\nb\nc\n", " x\n-b\n+B\n c"),
    DiffCase("update empty", "a\n", ""),
    DiffCase("update context alone", "a\nb\n", " a\n b"),
    DiffCase("update blank context line", "a\n\nb\n", " a\n\n-b\n+B"),
    DiffCase("update line without prefix", "a\nb\n", "a\n-b\n+B"),
    DiffCase("update of an empty file", "", "@@\n+x"),
    DiffCase("update with an envelope", "a\n", "*** Begin Patch\n*** Update File: f\n-a\n+A\n*** End Patch"),
    DiffCase("create", None, "+a\n+b"),
    DiffCase("create empty line", None, "+a\n+\n+b"),
    DiffCase("create empty", None, ""),
    DiffCase("create without prefix", None, "a\nb"),
    DiffCase("create with context", None, "+a\n b"),
]
