"""Takes pages out of the PDF on standard input, as a program of its own, and writes them to standard output as a PDF.

A PDF may make its parser loop, or inflate to gigabytes. So the process loads the parser, gives up everything but its
memory and its two streams, and only then reads the PDF. The first line of the output is the number of pages of the PDF.
"""

import io
import os
import sys


def chosen(data: bytes, first: int, last: int, most: int) -> tuple[int, bytes]:
    """Return the number of pages of a PDF, and a PDF with some of them; no bytes if it has none of them.

    Raises ValueError if the result has more than `most` bytes.
    """
    from pypdf import PdfReader, PdfWriter  # noqa: PLC0415  only the worker loads it

    reader = PdfReader(io.BytesIO(data))
    total = len(reader.pages)
    if first > total:
        return total, b""
    writer, made = PdfWriter(), io.BytesIO()
    for number in range(first - 1, min(last, total)):
        writer.add_page(reader.pages[number])
    writer.write(made)
    if made.tell() > most:
        raise ValueError("the pages have too many bytes")
    return total, made.getvalue()


def _load_parser() -> None:
    """Take a page out of a small PDF, so that nothing is loaded later."""
    from pypdf import PdfWriter  # noqa: PLC0415  only the worker loads it

    writer, made = PdfWriter(), io.BytesIO()
    writer.add_blank_page(72, 72)
    writer.write(made)
    chosen(made.getvalue(), 1, 1, 100_000)


def main() -> None:
    """Load the parser, give up all rights, then take the pages out."""
    memory, seconds, first, last, most = map(int, sys.argv[1:6])
    # Append it, so that an installed handrail, which is on the path already, comes first.
    sys.path.append(os.path.normpath(os.path.join(os.path.abspath(__file__), *[os.pardir] * 4)))
    from handrail.kernel.sandbox.helpers.confined_worker import bound, give_up_rights  # noqa: PLC0415  sys.path must be set first

    bound(memory, seconds)
    _load_parser()
    give_up_rights(sys.argv[6])
    total, data = chosen(sys.stdin.buffer.read(), first, last, most)
    sys.stdout.buffer.write(b"%d\n%s" % (total, data))


if __name__ == "__main__":
    main()
