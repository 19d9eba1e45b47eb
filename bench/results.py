"""Results as files: what `make bench*` measured, on which machine and when."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from handrail import __version__
from handrail.kernel.search.rg_process import program

OUT = Path(__file__).parent / "out"


def save(name: str, results: dict[str, Any]) -> Path:
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.json"
    path.write_text(json.dumps({"about": about(), **results}, indent=1) + "\n")
    return path


def load(name: str) -> dict[str, Any]:
    path = OUT / f"{name}.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def about() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GB",
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "node": _first_line("node", "--version"),
        "ripgrep": _first_line(program() or "rg", "--version"),
        "handrail": __version__,
    }


def _processor() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _first_line(*argv: str) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except OSError:
        return "–"
