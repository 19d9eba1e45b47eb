"""`make bundle`: the server with all that it needs in one file, for the Python and the machine that it is made with."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

HOME = Path(__file__).parent.parent.parent
MADE, BUNDLE = HOME / "build" / "mcpb", HOME / "dist" / "handrail.mcpb"
PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]


def main() -> None:
    shutil.rmtree(MADE, ignore_errors=True)
    library = MADE / "site-packages"  # the name by which programs of packages are trusted
    library.mkdir(parents=True)
    install = [*PIP, "--constraint", str(HOME / "constraints.txt"), "--target", str(library), str(HOME)]
    subprocess.run(install, check=True)
    _put_records_right(library)
    (MADE / "manifest.json").write_text(json.dumps(_manifest(), indent=2) + "\n")
    _pack()
    print(f"{BUNDLE.relative_to(HOME)}, {BUNDLE.stat().st_size >> 20} MiB")


def _put_records_right(library: Path) -> None:
    """Programs go to bin/ within a target, but pip records where they would have been without one."""
    for record in library.glob("*.dist-info/RECORD"):
        record.write_text(re.sub(r"^(?:\.\./)+bin/", "bin/", record.read_text(), flags=re.MULTILINE))


def _manifest() -> dict[str, object]:
    """Compiled packages fit one minor version of Python, so the bundle does."""
    manifest: dict[str, object] = json.loads(Path(__file__).with_name("manifest.json").read_text())
    major, minor = sys.version_info[:2]
    runtimes = {"python": f">={major}.{minor},<{major}.{minor + 1}"}
    return manifest | {"compatibility": {"platforms": [sys.platform], "runtimes": runtimes}}


def _pack() -> None:
    """Files only: the official unpacker takes the entry of a directory for a file."""
    BUNDLE.parent.mkdir(exist_ok=True)
    with ZipFile(BUNDLE, "w", ZIP_DEFLATED) as bundle:
        for path in sorted(MADE.rglob("*")):
            if path.is_file():
                bundle.write(path, path.relative_to(MADE))


if __name__ == "__main__":
    main()
