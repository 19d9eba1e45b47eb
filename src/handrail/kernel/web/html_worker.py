"""Converts HTML on standard input to Markdown on standard output, as a program of its own.

The converter is native code, and a hostile page may attack it: make it allocate gigabytes (nested quotes, wide spans),
make it run for ever, or take over the process. So the process first loads the converter, then gives up everything but
its memory and its two streams, and only then reads the page.
"""

import os
import signal
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


def limit(**most: int) -> None:
    """Lower the resource limits of this process, where the system has them. Never raise one."""
    try:
        import resource  # noqa: PLC0415  POSIX only
    except ImportError:
        return  # the process that started this one enforces a deadline on every system
    for name, wanted in most.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            least = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(number, (least, least))


def end_after(seconds: int) -> None:
    """End this process by a signal after some seconds, even if the process that started it is gone."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


def main() -> None:
    """Load the converter, give up all rights, then convert the page."""
    base_url, memory, seconds, most = sys.argv[1], *map(int, sys.argv[2:5])
    # Append it, so that an installed handrail, which is on the path already, comes first.
    sys.path.append(os.path.normpath(os.path.join(os.path.abspath(__file__), *[os.pardir] * 4)))
    from handrail.kernel.sandbox.landlock_exec import filter_calls, give_up_files  # noqa: PLC0415  sys.path must be set first

    limit(AS=memory, CPU=seconds, CORE=0)  # before the converter allocates memory
    end_after(seconds)
    markdown("<p>loads what the converter loads at first use</p>", base_url)
    give_up_files()
    limit(FSIZE=0, NOFILE=0, NPROC=0)
    filter_calls(bytes.fromhex(sys.argv[5]))
    text = markdown(sys.stdin.buffer.read().decode(), base_url)
    sys.stdout.buffer.write(text[:most].encode())


if __name__ == "__main__":
    main()
