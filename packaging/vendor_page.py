"""Renews the libraries of the page from npm: `python packaging/vendor_page.py`. Each file keeps its licence at its top.

The versions stand here and nowhere else; `static/vendor/VENDORED.md` says what was taken.
"""

import io
import json
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path

PLACE = Path(__file__).parent.parent / "src/handrail/surfaces/page/static/vendor"
PACKAGES = {("@xterm/xterm", "6.0.0"): {"lib/xterm.mjs": "xterm.js", "css/xterm.css": "xterm.css"}}


def main() -> None:
    PLACE.mkdir(exist_ok=True)
    rows = []
    for (name, version), files in PACKAGES.items():
        contents = packed(name, version)
        about = json.loads(contents["package.json"])
        assert about["version"] == version
        licence = contents["LICENSE"].decode().strip()
        head = f"{name} {version}\n\n{licence}".replace("*/", "* /")
        for source, target in files.items():
            text = re.sub(r"^//# sourceMappingURL=.*$", "", contents[source].decode(), flags=re.MULTILINE)
            (PLACE / target).write_text(f"/*! {head} */\n{text.strip()}\n")
            rows.append(f"| `{target}` | {name} | {version} | {about['license']} |")
    table = ["| file | package | version | licence |", "|---|---|---|---|", *rows]
    title = (
        "# Libraries of others\n\n`packaging/vendor_page.py` renews these files. Each has its licence at its top.\n\n"
    )
    (PLACE / "VENDORED.md").write_text(title + "\n".join(table) + "\n")


def packed(name: str, version: str) -> dict[str, bytes]:
    """Return the files of a package."""
    with tempfile.TemporaryDirectory() as made:
        command = ["npm", "pack", "--silent", f"{name}@{version}", "--pack-destination", made]
        subprocess.run(command, check=True, capture_output=True)
        (archive,) = Path(made).glob("*.tgz")
        with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as opened:
            members = [each for each in opened.getmembers() if each.isfile()]
            read = {each.name.removeprefix("package/"): opened.extractfile(each) for each in members}
            return {name: file.read() for name, file in read.items() if file}


if __name__ == "__main__":
    main()
