"""Run as a program of its own: HTML on stdin, Markdown on stdout.

A small page can make the converter ask for gigabytes (nested quotes, wide spans), and a program that runs out of
memory in native code is gone. So it is this one that goes, with bounds that it sets itself.
"""

import contextlib
import sys


def markdown(html: str, base_url: str) -> str:
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert  # noqa: PLC0415  native, 50 ms

    options = ConversionOptions(
        base_url=base_url,
        compact_tables=True,
        extract_metadata=False,
        inline_data_media="alt_text_only",
        max_depth=256,
        preprocessing=PreprocessingOptions(remove_navigation=True, remove_forms=False),
    )
    return convert(html, options).content or ""


def limit(memory: int, seconds: int) -> None:
    # Not every system knows these limits; the deadline of whoever started us holds on all of them.
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415  POSIX only

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def main() -> None:
    base_url, memory, seconds, most = sys.argv[1], *map(int, sys.argv[2:])
    limit(memory, seconds)
    text = markdown(sys.stdin.buffer.read().decode(), base_url)
    sys.stdout.buffer.write(text[:most].encode())


if __name__ == "__main__":
    main()
