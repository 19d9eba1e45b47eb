"""Runs the tests in parallel under coverage, and holds every file of the kernel and the dialects to 95 percent."""

import json
import os
import subprocess
import sys
from pathlib import Path

FLOOR = 95.0
HELD = ("src/handrail/dialects/", "src/handrail/kernel/")


def main() -> int:
    for old in Path().glob(".coverage*"):
        old.unlink()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    workers = ["-n", str(os.cpu_count() or 2), "--dist", "worksteal"]
    failed = subprocess.run(
        [sys.executable, "-m", "coverage", "run", "-m", "pytest", *workers, *sys.argv[1:]], env=environment, check=False
    )
    if failed.returncode or sys.argv[1:]:
        return failed.returncode
    subprocess.run([sys.executable, "-m", "coverage", "combine", "--quiet"], check=True)
    report = Path(".coverage.json")
    subprocess.run([sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(report)], check=True)
    files = json.loads(report.read_text())["files"]
    low = [
        f"{name}: {facts['summary']['percent_covered']:.1f} %, missing {facts['missing_lines']}"
        for name, facts in sorted(files.items())
        if name.startswith(HELD) and facts["summary"]["percent_covered"] < FLOOR
    ]
    for line in low:
        print(f"coverage below {FLOOR:.0f} %: {line}", file=sys.stderr)
    return 1 if low else 0


if __name__ == "__main__":
    raise SystemExit(main())
