"""Words the output of a command for an answer."""

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handrail.kernel.process.bounded_output import Output


def output_text(stream: str, output: "Output", otherwise: str = "") -> str:
    """Decode the output of a stream, `stdout` or `stderr`. One line says how much was cut, and how to read it.

    `otherwise` says what to do if no file has the whole output.
    """
    return output.joined(_cut_line(stream, output, otherwise).encode()).decode(errors="replace")


def _cut_line(stream: str, output: "Output", otherwise: str) -> str:
    line = f"[… {output.cut_bytes} bytes of {stream} not shown"
    if output.spool:
        kept = "all of it" if output.spooled_bytes == output.total_bytes else f"its first {output.spooled_bytes} bytes"
        line += f"; a command can read {kept}: tail -n 50 {shlex.quote(output.spool)}"
    elif otherwise:
        line += f"; {otherwise}"
    return f"{line} …]"
