"""Gives the hints about contents: of a file that is not UTF-8, and of a change that was probably not meant so."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from handrail.model.faults import PathFault
from handrail.model.files import Change, Put
from handrail.model.hints import EscapedBreaks, FencedContent, OtherEncoding
from handrail.model.limits import BINARY_CHECK_BYTES
from handrail.model.warnings import ToolWarning
from handrail.ops.text.encoding import other_encoding
from handrail.ops.text.odd_content import fence_around, has_escaped_breaks

if TYPE_CHECKING:
    from handrail.kernel.fs.reader import Reader


def encoding_hints(reader: "Reader", path: str, given: Sequence[ToolWarning]) -> list[ToolWarning]:
    """Return the hint that a file holds text in another encoding than UTF-8, unless the call already gives it."""
    if any(isinstance(each, OtherEncoding) and each.path == path for each in given):
        return []
    try:
        encoding = other_encoding(reader.head(path, BINARY_CHECK_BYTES)[0])
    except PathFault:  # the file was deleted after the tool read it
        return []
    return [OtherEncoding(path, encoding)] if encoding else []


def oddities(change: Change) -> Iterator[ToolWarning]:
    """Yield hints about a new content that the model probably did not mean."""
    if isinstance(change, Put) and change.data != (change.base.data if change.base else None):
        if has_escaped_breaks(change.data):
            yield EscapedBreaks(change.path)
        if fence := fence_around(change.path, change.data):
            yield FencedContent(change.path, fence)
