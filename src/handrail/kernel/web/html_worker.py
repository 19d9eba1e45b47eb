"""Run as a program of its own: HTML on stdin, Markdown on stdout.

The converter is native code, and the page may be made to break it: to ask for gigabytes (nested quotes, wide spans), to
run for ever, or to take the process over. So it is loaded first, then this process gives up all but its memory and its
two streams, and only then reads the page.
"""

import os
import signal
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


def limit(**most: int) -> None:
    """Bound what the process may take, where the system knows such a limit. A lower limit that it has already stays."""
    try:
        import resource  # noqa: PLC0415  POSIX only
    except ImportError:
        return  # the deadline of the process that started us holds on every system
    for name, wanted in most.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            least = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(number, (least, least))


def end_after(seconds: int) -> None:
    """End by a signal then, also if the process that started us is gone."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


def main() -> None:
    base_url, memory, seconds, most = sys.argv[1], *map(int, sys.argv[2:5])
    # Behind all others: where handrail is installed, it is on the path already.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from handrail.kernel.sandbox.landlock_exec import filter_calls, give_up_files  # noqa: PLC0415  not before it can be found

    limit(AS=memory, CPU=seconds, CORE=0)  # before the converter reserves any
    end_after(seconds)
    markdown("<p>all that it loads when first used</p>", base_url)
    give_up_files()
    limit(FSIZE=0, NOFILE=0, NPROC=0)
    filter_calls(bytes.fromhex(sys.argv[5]))
    text = markdown(sys.stdin.buffer.read().decode(), base_url)
    sys.stdout.buffer.write(text[:most].encode())


if __name__ == "__main__":
    main()
