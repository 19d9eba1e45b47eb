"""Makes calls through `@google/gemini-cli-core`, which `make test-references` installs beside the Python packages."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from references.comparing import Answer, ReferenceCase, params_of, plain

_HOME = Path(sys.prefix, "gemini-0.61.0")
PACKAGE = _HOME / "node_modules" / "@google" / "gemini-cli-core"
INSTALLED = (_HOME / "installed").exists()
_DRIVER = Path(__file__).with_name("drive_gemini.mjs")
_PATH = os.pathsep.join([str(Path(sys.prefix, "bin")), os.environ["PATH"]])
_SECONDS = 300


def gemini_tools(cases: list[tuple[ReferenceCase, Path]], store: Path) -> tuple[list[list[Answer]], list[Any]]:
    """Make the calls of all cases in one process. Returns the answers of each case, and the declared tools."""
    asked = [
        {"root": str(root), "calls": [[tool, params_of(params, root)] for tool, params in case.calls]}
        for case, root in cases
    ]
    home = store / "home"
    home.mkdir()
    (store / "cases.json").write_text(json.dumps(asked))
    node, ripgrep = shutil.which("node", path=_PATH), shutil.which("rg", path=_PATH)
    assert node
    assert ripgrep
    subprocess.run(
        [node, str(_DRIVER), str(PACKAGE), ripgrep, str(store / "cases.json"), str(store / "answers.json")],
        env={"HOME": str(home), "PATH": _PATH},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_SECONDS,
    )
    found = json.loads((store / "answers.json").read_text())
    answers = [
        [Answer(each["failed"], plain(each["content"], root)) for each in of_case]
        for of_case, (_, root) in zip(found["answers"], cases, strict=True)
    ]
    return answers, found["schemas"]
