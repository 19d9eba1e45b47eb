import os
import sys
from typing import Any

from deepagents.backends.local_shell import LocalShellBackend

from bench.drivers.serve import serve

ROOT = sys.argv[1]
backend = LocalShellBackend(root_dir=ROOT, virtual_mode=True)


def _in(path: str) -> str:
    return f"/{os.path.relpath(path, ROOT)}"


def _ok(result: Any) -> Any:
    if getattr(result, "error", None):
        raise RuntimeError(str(result.error))
    return result


if __name__ == "__main__":
    serve(
        {
            "read": lambda path: _ok(backend.read(_in(path))),
            "page": lambda path, line, count: _ok(backend.read(_in(path), line - 1, count)),
            "list": lambda path: _ok(backend.ls(_in(path))),
            "write": lambda path, content: _ok(backend.write(_in(path), content)),
            "edit": lambda path, old, new: _ok(backend.edit(_in(path), old, new)),
            "glob": lambda path, pattern: _ok(backend.glob(pattern, _in(path))),
            "search": lambda path, text: _ok(backend.grep(text, _in(path))),
            "first": lambda path, text, limit: _ok(backend.grep(text, _in(path), max_count=limit)),
            "shell": lambda command: _ok(backend.execute(command)),
        }
    )
