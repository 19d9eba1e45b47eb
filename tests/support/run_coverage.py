"""Runs the tests under coverage, the serial ones last and alone.

Requires 95 percent for every file of the kernel and the dialects, and for every tool.
"""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

FLOOR = 95.0
HELD = ("src/handrail/dialects/", "src/handrail/kernel/")


def main() -> int:
    for old in Path().glob(".coverage*"):
        old.unlink()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    given, together = sys.argv[1:], ["-n", "auto", "--dist", "worksteal"]
    for chosen in [[*together, *given]] if given else [[*together, "-m", "not serial"], ["-m", "serial"]]:
        measured = [sys.executable, "-m", "coverage", "run", "-m", "pytest", *chosen]
        failed = subprocess.run(measured, env=environment, check=False).returncode
        if failed:
            return failed
    if given:
        return 0
    subprocess.run([sys.executable, "-m", "coverage", "combine", "--quiet"], check=True)
    report = Path(".coverage.json")
    subprocess.run([sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(report)], check=True)
    files = json.loads(report.read_text())["files"]
    low = below_the_floor(files)
    for line in low:
        print(f"coverage below {FLOOR:.0f} %: {line}", file=sys.stderr)
    return 1 if low else 0


def below_the_floor(files: dict[str, Any]) -> list[str]:
    """Return the files and tools below the required coverage, with their missing lines."""
    low = [_said(name, facts) for name, facts in sorted(files.items()) if name.startswith(HELD) and _is_low(facts)]
    for tool, (file, function) in functions_of_tools().items():
        facts = files.get(file, {}).get("functions", {}).get(function)
        if facts is None:
            low.append(f"{tool}: not in the report")
        elif _is_low(facts):
            low.append(_said(tool, facts))
    return low


def _is_low(facts: dict[str, Any]) -> bool:
    return bool(facts["summary"]["percent_covered"] < FLOOR)


def _said(name: str, facts: dict[str, Any]) -> str:
    return f"{name}: {facts['summary']['percent_covered']:.1f} %, missing {facts['missing_lines']}"


def functions_of_tools() -> dict[str, tuple[str, str]]:
    """Return the file and the function name of each tool."""
    from handrail.dialects import NAMES, load

    found = {}
    for dialect in NAMES:
        for tool in load(dialect).tools.values():
            code = inspect.unwrap(tool.run).__code__
            file = code.co_filename[code.co_filename.rindex("src/handrail/") :]
            found[f"{dialect}.{tool.name}"] = (file, code.co_name)
    return found


if __name__ == "__main__":
    raise SystemExit(main())
