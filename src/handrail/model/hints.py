"""Declares what an answer adds about a usual mistake. A hint has facts, no sentences (`tools/hint_messages.py`).

Note:
├── NearestPath · HomeNotExpanded    before the suggestion of an error about a path
├── AbsoluteGlob · SlashedGlob       a glob that found nothing, and never could
├── BinaryShown                      a file that is no text was read as text
└── EscapedBreaks · FencedContent    a content that probably was not meant so

"""

from handrail.model.warnings import ToolWarning


class NearestPath(ToolWarning):
    """A path does not exist, but similar ones do."""

    names: list[str]


class HomeNotExpanded(ToolWarning):
    """A path begins with `~/`, which no tool expands."""

    instead: str
    """The same path below the root."""


class AbsoluteGlob(ToolWarning):
    """A search with an absolute glob found nothing: globs are relative to the searched directory."""

    glob: str
    instead: str


class SlashedGlob(ToolWarning):
    """A search found nothing with a glob that has backslashes between its names."""

    glob: str
    instead: str


class BinaryShown(ToolWarning):
    """A binary file was read as text."""

    path: str
    kind: str
    """The media type, by the name of the file; empty if that is unknown."""


class EscapedBreaks(ToolWarning):
    r"""A new content has no line break, but the two characters `\n` several times."""

    path: str


class FencedContent(ToolWarning):
    """A new content stands in a Markdown fence, although the file is no Markdown."""

    path: str
    fence: str
