"""How each operation is spelled for Handrail, the same on every surface."""

import os
from typing import Any

CODEX = ("list_dir", "apply_patch_freeform", "shell", "exec_command", "write_stdin")
DIALECTS = {"grep": "context", "file_search": "copilot"} | dict.fromkeys(CODEX, "codex")
Spelled = tuple[str, dict[str, Any]]


class Handrail:
    root: str

    def dialect_of(self, tool: str) -> str:
        return DIALECTS.get(tool, "file")

    def _in(self, path: str) -> str:
        return os.path.relpath(path, self.root)

    def read(self, path: str) -> Spelled:
        return "file.read", {"path": self._in(path)}

    def page(self, path: str, line: int, count: int) -> Spelled:
        return "file.read", {"path": self._in(path), "offset": line, "limit": count}

    def list(self, path: str) -> Spelled:
        """Names only, as most peers list them; `file.list` would look at each file for its size and time."""
        return "list_dir", {"path": self._in(path), "depth": 1, "limit": 100_000}

    def write(self, path: str, content: str) -> Spelled:
        return "file.write", {"path": self._in(path), "content": content}

    def edit(self, path: str, old: str, new: str) -> Spelled:
        return "file.patch", {"path": self._in(path), "patches": [{"find": old, "replace": new}]}

    def patch(self, text: str, unified: str) -> Spelled:
        return "apply_patch_freeform", {"patch": text}

    def glob(self, path: str, pattern: str) -> Spelled:
        """Names, in order, with the exact total; `file.list` would look at each file for its size and time."""
        return "file_search", {"base_path": self._in(path), "pattern": pattern}

    def search(self, path: str, text: str) -> Spelled:
        return "file.search", {"path": self._in(path), "pattern": text}

    def first(self, path: str, text: str, limit: int) -> Spelled:
        return "file.search", {"path": self._in(path), "pattern": text, "max_results": limit}

    def count(self, path: str, text: str) -> Spelled:
        return "grep", {"path": self._in(path), "pattern": text, "context_lines": 0, "max_results": 100}

    def sandboxed(self, command: str) -> Spelled:
        return "shell", {"command": command}

    def command(self, command: str) -> Spelled:
        return self.sandboxed(command)

    def start_terminal(self) -> Spelled:
        return "exec_command", {"session_id": "bench", "cmd": "cat"}

    def terminal(self, text: str) -> Spelled:
        return "write_stdin", {"session_id": "bench", "chars": text}
