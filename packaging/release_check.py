"""`make release-check`: the checklist of a release. One line a check; the exit code is 1 if one fails.

python packaging/release_check.py [--home DIR] [CHECK …]
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from email import message_from_bytes
from importlib.metadata import Distribution, distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parent.parent
_LICENCE = re.compile(r"licen[cs]e|copying", re.IGNORECASE)


class Failed(Exception):  # noqa: N818  a line of the report
    """Says what is wrong."""


def versions(home: Path) -> str:
    server = json.loads(_text(home, "server.json"))
    found = {
        "pyproject.toml": _project(home)["version"],
        "src/handrail/__init__.py": _first(r'^__version__ = "(.+)"$', _text(home, "src/handrail/__init__.py")),
        "server.json": server["version"],
        "server.json, package": server["packages"][0]["version"],
        "packaging/mcpb/manifest.json": json.loads(_text(home, "packaging/mcpb/manifest.json"))["version"],
    }
    if len({*found.values()}) > 1:
        raise Failed("; ".join(f"{place} says {version}" for place, version in found.items()))
    return f"{found['pyproject.toml']} in {len(found)} places"


def changelog(home: Path) -> str:
    version = _project(home)["version"]
    title, _, body = _text(home, "CHANGELOG.md").partition(f"\n## {version}")[2].partition("\n")
    if title[:1] not in ("", ",", " ") or not body.partition("\n## ")[0].strip():
        raise Failed(f"CHANGELOG.md has no section '## {version}', or an empty one")
    return f"section {version}{title}"


def server_name(home: Path) -> str:
    name = str(json.loads(_text(home, "server.json"))["name"])
    if f"<!-- mcp-name: {name} -->" not in _text(home, "README.md"):
        raise Failed(f"README.md has no comment 'mcp-name: {name}', which the MCP registry looks for")
    return name


def readme(home: Path) -> str:
    text = re.sub(r"^```.*?^```$", "", _text(home, "README.md"), flags=re.MULTILINE | re.DOTALL)
    if "```" in text:
        raise Failed("README.md has a code block that does not end")
    links = re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", text)
    for link in links:
        if not (home / link).exists():
            raise Failed(f"README.md links to {link}, which does not exist")
    return f"{len(links)} links lead to files"


def licences(home: Path) -> str:
    """Checks the licence of the project, and those of the packages that the MCPB bundle carries."""
    for name in _project(home)["license-files"]:
        if not _text(home, name).strip():
            raise Failed(f"{name} is empty")
    bundled = _bundled(home)
    if bare := {each.name for each in bundled if not _brings_licence(each)}:
        raise Failed(f"these packages of the bundle bring no licence file: {_listed(bare)}")
    return f"{_project(home)['license']}, and {len(bundled)} packages in the bundle bring theirs"


def wheel(home: Path) -> str:
    with TemporaryDirectory() as made:
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", made]
        done = subprocess.run(build, cwd=home, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"it cannot be built: {done.stderr.strip().splitlines()[-1]}")
        (path,) = Path(made).glob("*.whl")
        with ZipFile(path) as packed:
            contents = {name: packed.read(name) for name in packed.namelist()}
    files = (home / "src" / "handrail").rglob("*")
    modules = {file.relative_to(home / "src").as_posix() for file in files if file.suffix == ".py"}
    static = home / "src" / "handrail" / "surfaces" / "page" / "static"
    page = {file.relative_to(home / "src").as_posix() for file in static.rglob("*") if file.is_file()}
    info = f"handrail-{_project(home)['version']}.dist-info"
    about = {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    expected = {*modules, *page, "handrail/py.typed", *about}
    if {*contents} != expected:
        raise Failed(f"missing: {_listed(expected - {*contents})}; not expected: {_listed({*contents} - expected)}")
    if message_from_bytes(contents[f"{info}/METADATA"])["Description-Content-Type"] != "text/markdown":
        raise Failed("its metadata do not carry the README as Markdown")
    files_too = f"{len(page)} files of the page, py.typed, the licence"
    return f"{path.name} has {len(modules)} modules, {files_too}, and nothing else"


CHECKS: dict[str, Callable[[Path], str]] = {
    each.__name__: each for each in (versions, changelog, server_name, readme, licences, wheel)
}


def main() -> None:
    options = argparse.ArgumentParser(description="Checks what a release needs.")
    options.add_argument("--home", type=Path, default=HERE, help="the source tree")
    options.add_argument("checks", nargs="*", metavar="CHECK", help=f"of {', '.join(CHECKS)}; all if none is named")
    given = options.parse_args()
    if unknown := {*given.checks} - {*CHECKS}:
        options.error(f"unknown check {min(unknown)}; choose from {', '.join(CHECKS)}")
    failed = False
    for name in given.checks or CHECKS:
        try:
            print(f"ok    {name}: {CHECKS[name](given.home)}")
        except Exception as error:  # a check that cannot be made is not passed
            failed = True
            print(f"FAIL  {name}: {error if isinstance(error, Failed) else repr(error)}")
    sys.exit(failed)


def _bundled(home: Path) -> list[Distribution]:
    """Lists the installed packages that Handrail needs to run, and those that they need in turn."""
    found: dict[str, Distribution] = {}
    wanted = [(Requirement(line), {""}) for line in _project(home)["dependencies"]]
    followed = set()
    while wanted:
        needed, extras = wanted.pop()
        if str(needed) in followed or (needed.marker and not any(needed.marker.evaluate({"extra": e}) for e in extras)):
            continue
        followed.add(str(needed))
        package = found[canonicalize_name(needed.name)] = distribution(needed.name)
        wanted += [(Requirement(line), {"", *needed.extras}) for line in package.requires or ()]
    return [*found.values()]


def _brings_licence(package: Distribution) -> bool:
    return any(".dist-info/" in str(file) and _LICENCE.search(file.name) for file in package.files or ())


def _project(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(_text(home, "pyproject.toml"))["project"]
    return found


def _text(home: Path, name: str) -> str:
    return (home / name).read_text(encoding="utf-8")


def _first(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else None


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


if __name__ == "__main__":
    main()
