"""Converts HTML on standard input to Markdown on standard output, as a program of its own.

The converter is native code, and a hostile page may attack it: make it allocate gigabytes (nested quotes, wide spans),
make it run for ever, or take over the process. So the process first loads the converter, then gives up everything but
its memory and its two streams, and only then reads the page.
"""

import os
import sys


def markdown(html: str, base_url: str) -> str:
    """Convert a page to Markdown."""
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert  # noqa: PLC0415  only the worker loads it

    options = ConversionOptions(
        base_url=base_url,
        compact_tables=True,
        extract_metadata=False,
        inline_data_media="alt_text_only",
        max_depth=256,
        preprocessing=PreprocessingOptions(remove_navigation=True, remove_forms=False),
    )
    return convert(html, options).content or ""


def main() -> None:
    """Load the converter, give up all rights, then convert the page."""
    base_url, memory, seconds, most = sys.argv[1], *map(int, sys.argv[2:5])
    # Append it, so that an installed handrail, which is on the path already, comes first.
    sys.path.append(os.path.normpath(os.path.join(os.path.abspath(__file__), *[os.pardir] * 4)))
    from handrail.kernel.sandbox.helpers.confined_worker import bound, give_up_rights  # noqa: PLC0415  sys.path must be set first

    bound(memory, seconds)
    markdown("<p>loads what the converter loads at first use</p>", base_url)
    give_up_rights(sys.argv[5])
    text = markdown(sys.stdin.buffer.read().decode(), base_url)
    sys.stdout.buffer.write(text[:most].encode())


if __name__ == "__main__":
    main()
