"""Takes pages out of PDFs that loop, nest without end, inflate to gigabytes, or are no PDF at all."""

import struct
import zlib
from pathlib import Path

import pytest

from handrail import Workspace
from handrail.kernel.deadline import Deadline
from handrail.kernel.images.pdf_pages import NotTakenApart, choose_pages
from handrail.model.limits import MIB, Limits

CATALOG = b"%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
END = b"\ntrailer<</Root 1 0 R>>\nstartxref\n0\n%%EOF\n"


def inflating(size: int) -> bytes:
    """Return a PDF whose page tree is in a stream that inflates to `size` bytes."""
    held = zlib.compress(b"2 0 <</Type/Pages/Kids[]/Count 0>>" + b" " * size, 9)
    head = b"3 0 obj<</Type/ObjStm/N 1/First 4/Filter/FlateDecode/Length %d>>stream\n" % len(held)
    made = CATALOG + head + held + b"\nendstream endobj\n"
    rows = [(0, 0, 0), (1, CATALOG.index(b"1 0 obj"), 0), (2, 3, 0), (1, len(CATALOG), 0), (1, len(made), 0)]
    table = b"".join(struct.pack(">BIB", *row) for row in rows)
    about = b"4 0 obj<</Type/XRef/Size 5/W[1 4 1]/Root 1 0 R/Length %d>>stream\n" % len(table)
    return made + about + table + b"\nendstream endobj\nstartxref\n%d\n%%%%EOF\n" % len(made)


HOSTILE = {
    "nothing": b"%PDF-1.7\n",
    "loop": CATALOG + b"2 0 obj<</Type/Pages/Kids[2 0 R]/Count 1>>endobj" + END,
    "lying count": CATALOG + b"2 0 obj<</Type/Pages/Kids[]/Count 999999999>>endobj" + END,
    "nested": CATALOG + b"2 0 obj" + b"[" * 100_000 + b"]" * 100_000 + b"endobj" + END,
    "huge number": CATALOG + b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count " + b"9" * 100_000 + b">>endobj" + END,
    "inflating": b"",  # made by the test, because it takes a second
    "encrypted": CATALOG + b"\ntrailer<</Root 1 0 R/Encrypt<</Filter/Standard/V 9/R 9>>>>\nstartxref\n0\n%%EOF\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_pdf_gets_clear_answer_within_limits(kind: str, root: Path) -> None:
    (root / "a.pdf").write_bytes(HOSTILE[kind] or inflating(300 * MIB))
    limits = {"pdf_seconds": 10, "pdf_memory_bytes": 300 * MIB}
    with Workspace(str(root), limits=limits) as workspace:
        result = workspace.call("claude-code", "Read", {"file_path": str(root / "a.pdf"), "pages": "1"})
    assert result.error is not None
    assert result.error.code == "invalid_parameters"
    assert result.output in (
        "Invalid pages: the PDF cannot be taken apart",
        "Invalid pages: the PDF has 0 pages",
    )


def test_endless_pdf_is_stopped_at_its_deadline() -> None:
    pages = b"2 0 obj<</Type/Pages/Kids[%s]/Count 1>>endobj\n" % (b"3 0 R " * 2_000_000)
    data = CATALOG + pages + b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj" + END
    with pytest.raises(NotTakenApart):
        choose_pages(data, 1, 1, Deadline(1), Limits())
