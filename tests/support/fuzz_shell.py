"""Compares Handrail's reading of commands with real bash.

Usage: PYTHONPATH=tests python -m support.fuzz_shell [COUNT] [SEED]
"""

import sys
import time
from dataclasses import dataclass, field
from random import Random, randrange

from handrail.ops.shell.command_programs import parse_command
from handrail.ops.shell.substitution import substitutes
from support.bash_oracle import Observed, find_sandbox, observe
from support.shell_strings import Strings


@dataclass
class Tally:
    strings: int = 0
    substituted: int = 0
    missed: list[str] = field(default_factory=list)
    clean: int = 0
    unnamed: list[str] = field(default_factory=list)
    """Commands for which bash ran a program that parse_command did not name, or other words."""
    refused: list[str] = field(default_factory=list)
    """Commands that bash ran without error or substitution, but that `substitutes` refuses."""


def compare(count: int, seed: int, sandbox: list[str], *, straight: bool = False) -> Tally:
    strings = Strings(Random(seed), straight=straight)
    commands = [strings.one() for _ in range(count)]
    tally = Tally(strings=count)
    for command, seen in zip(commands, observe(commands, sandbox), strict=True):
        refused = substitutes(command)
        tally.substituted += seen.substituted
        if not _named(command, seen):
            tally.unnamed.append(command)
        if seen.substituted and not refused:
            tally.missed.append(command)
        if not seen.substituted and not seen.complained:
            tally.clean += 1
            if refused:
                tally.refused.append(command)
    return tally


def _named(command: str, seen: Observed) -> bool:
    line = parse_command(command)
    if line.simple is not None and seen.ran not in ([], [line.simple]):
        return False
    return line.unknown or {argv[0] for argv in seen.ran} <= set(line.programs)


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else randrange(1_000_000)
    sandbox = find_sandbox()
    if sandbox is None:
        print("no sandbox, so nothing was run", file=sys.stderr)
        return 2
    start = time.monotonic()
    wild = compare(count * 3 // 4, seed, sandbox)
    straight = compare(count // 4, seed, sandbox, straight=True)
    missed, unnamed = wild.missed + straight.missed, wild.unnamed + straight.unnamed
    print(f"seed {seed}: {count} strings in {time.monotonic() - start:.0f} s")
    print(f"substituted by bash: {wild.substituted + straight.substituted}, missed: {len(missed)}")
    print(f"programs not named: {len(unnamed)}")
    print(f"straight, clean, not substituted: {straight.clean}, refused all the same: {len(straight.refused)}")
    for kind, commands in (("missed", missed), ("unnamed", unnamed), ("refused", straight.refused)):
        for command in sorted(commands, key=len)[:20]:
            print(kind, repr(command))
    return 1 if missed or unnamed else 0


if __name__ == "__main__":
    sys.exit(main())
