"""Reads fences, sections and tables of the documents."""

import re
from pathlib import Path

HOME = Path(__file__).parent.parent.parent
ROOT_PAGES = [HOME / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "contracts/README.md")]
PAGES = [*ROOT_PAGES, *sorted(HOME.glob("docs/**/*.md"))]
NAMED = [str(page.relative_to(HOME)) for page in PAGES]


def text(page: str) -> str:
    return (HOME / page).read_text()


def fences(page: str, *kinds: str) -> list[str]:
    return re.findall(rf"^```(?:{'|'.join(kinds)})\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL)


def prose(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", text(page), flags=re.MULTILINE | re.DOTALL)


def section(page: str, heading: str) -> str:
    return re.split(r"^#+ ", text(page).partition(f"\n## {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def table(rows: str) -> list[list[str]]:
    """Return the cells of the first table, without its header."""
    found = re.search(r"(?:^\|.*\n)+", rows, re.MULTILINE)
    lines = found[0].splitlines()[2:] if found else []
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def names(cells: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cells)
