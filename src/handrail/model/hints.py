"""Declares what an answer adds about a usual mistake. A hint has facts, no sentences (`tools/hint_messages.py`).

Note:
├── NearestPath · HomeNotExpanded    before the suggestion of an error about a path
├── AbsoluteGlob · SlashedGlob       a glob that found nothing, and never could
├── BinaryShown · OtherEncoding      a file that is no text, or no UTF-8 text, was read as text
├── EscapedBreaks · FencedContent    a content that probably was not meant so
├── FileWithSlash                    the path of a file ends with a slash; replaces the suggestion of the error
├── ParameterIgnored                 a tool ignored a parameter that it does not know
├── CarriageReturns                  lines of a command end with a carriage return
└── PageMissing                      a page of a listing after the last one

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
    """The new content is in a Markdown fence, although the file is not Markdown."""

    path: str
    fence: str


class OtherEncoding(ToolWarning):
    """A file was read whose text is not in UTF-8."""

    path: str
    encoding: str
    """The name that `iconv` knows, such as UTF-16LE."""


class FileWithSlash(ToolWarning):
    """A path ends with a slash, but names a file."""

    instead: str


class ParameterIgnored(ToolWarning):
    """A tool ignored a parameter that it does not know, as its reference does."""

    name: str
    near: str
    """The parameter that is probably meant; empty if none is near."""
    known: list[str]


class CarriageReturns(ToolWarning):
    """Lines of a command end with a carriage return, which a shell takes as a part of the last word."""


class PageMissing(ToolWarning):
    """A listing has no page of this number."""

    page: int
    pages: int
