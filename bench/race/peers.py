"""The peers, one class each: how it is installed, how it is started, and how each operation is spelled."""

import base64
import glob
import json
import os
import time
from typing import Any

from bench.race.contender import Answer, Contender, Driven, JsonRpc, Mcp
from bench.race.install import NODE, Npm, PyPI
from bench.race.opencode import Opencode
from bench.race.spelling import Spelled
from bench.race.talk import Refused
from handrail.kernel.search.rg_process import program


def _line(path: str, text: str) -> str:
    """The whole line that holds a text, for those who edit by lines."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return next(each for each in file if text in each).rstrip("\r\n")


class OfficialFilesystem(Mcp):
    name = "official filesystem"
    package = Npm("@modelcontextprotocol/server-filesystem", "2026.8.31")
    confines = True

    def argv(self) -> list[str]:
        return [NODE, self.package.bin("mcp-server-filesystem"), self.root]

    def read(self, path: str) -> Spelled:
        return "read_text_file", {"path": path}

    def list(self, path: str) -> Spelled:
        return "list_directory", {"path": path}

    def write(self, path: str, content: str) -> Spelled:
        return "write_file", {"path": path, "content": content}

    def edit(self, path: str, old: str, new: str) -> Spelled:
        return "edit_file", {"path": path, "edits": [{"oldText": old, "newText": new}]}

    def glob(self, path: str, pattern: str) -> Spelled:
        return "search_files", {"path": path, "pattern": pattern}


class DesktopCommander(Mcp):
    name = "Desktop Commander"
    package = Npm("@wonderwhy-er/desktop-commander", "0.2.52", {"typedarray.prototype.slice": "1.0.5"})
    confines = True
    terminal_pid = 0

    def argv(self) -> list[str]:
        folder = f"{self.home}/.claude-server-commander"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
            settings = {"telemetryEnabled": False, "allowedDirectories": [self.root], "fileReadLineLimit": 5000}
            json.dump(settings | {"defaultShell": "/bin/sh"}, file)
        return [NODE, self.package.bin("desktop-commander"), "--no-onboarding"]

    def read(self, path: str) -> Spelled:
        return "read_file", {"path": path}

    def page(self, path: str, line: int, count: int) -> Spelled:
        return "read_file", {"path": path, "offset": line - 1, "length": count}

    def list(self, path: str) -> Spelled:
        return "list_directory", {"path": path, "depth": 1}

    def write(self, path: str, content: str) -> Spelled:
        return "write_file", {"path": path, "content": content, "mode": "rewrite"}

    def edit(self, path: str, old: str, new: str) -> Spelled:
        return "edit_block", {"file_path": path, "old_string": old, "new_string": new}

    def glob(self, path: str, pattern: str) -> Spelled:
        return self._found(path, pattern, "files", 100_000)

    def search(self, path: str, text: str) -> Spelled:
        return self._found(path, text, "content", 100)

    def first(self, path: str, text: str, limit: int) -> Spelled:
        return self._found(path, text, "content", limit)

    def _found(self, path: str, pattern: str, what: str, most: int) -> Spelled:
        return "start_search", {
            "path": path,
            "pattern": pattern,
            "searchType": what,
            "maxResults": most,
            "includeHidden": True,
            "literalSearch": what == "content",
        }

    def ask(self, deadline: float, name: str, arguments: dict[str, Any]) -> str:
        """A search runs on by itself and is asked for its results until it is done."""
        text = super().ask(deadline, name, arguments)
        if name == "start_search":
            session = text.split("session: ", 1)[-1].split()[0]
            while "Status: IN PROGRESS" in text or "🔄" in text:
                text = super().ask(deadline, "get_more_search_results", {"sessionId": session, "length": 100_000})
        return text

    def shell(self, command: str) -> Spelled:
        return "start_process", {"command": command, "timeout_ms": 5000}

    command = shell

    def do(self, operation: str, seconds: float, repeat: int = 1, **arguments: Any) -> Answer:
        if operation == "terminal" and not self.terminal_pid:
            text = self.ask(
                time.perf_counter() + seconds, "start_process", {"command": "python3 -i", "timeout_ms": 3000}
            )
            self.terminal_pid = int(text.split("PID ", 1)[1].split()[0])
        return super().do(operation, seconds, repeat, **arguments)

    def terminal(self, text: str) -> Spelled:
        return "interact_with_process", {
            "pid": self.terminal_pid,
            "input": f"print({text.strip()!r})",
            "timeout_ms": 5000,
        }


class J0hanz(Mcp):
    name = "j0hanz filesystem"
    package = Npm("@j0hanz/filesystem-mcp", "2.5.0", {"@adguard/re2-wasm": "1.2.0"}, newer_node=True)
    confines = True

    def argv(self) -> list[str]:
        return [self.package.node, self.package.bin("filesystem-mcp"), self.root]

    def read(self, path: str) -> Spelled:
        return "read", {"path": path}

    def list(self, path: str) -> Spelled:
        return "list", {"path": path, "maxEntries": 20_000}

    def write(self, path: str, content: str) -> Spelled:
        return "create", {"files": [{"path": path, "content": content, "overwrite": True}]}

    def edit(self, path: str, old: str, new: str) -> Spelled:
        return "edit", {"path": path, "edits": [{"oldText": old, "newText": new}]}

    def glob(self, path: str, pattern: str) -> Spelled:
        return "find_files", {"path": path, "pattern": pattern, "maxResults": 10_000, "includeHidden": True}

    def search(self, path: str, text: str) -> Spelled:
        return "search_text", {"path": path, "searchPattern": text, "includeHidden": True}


class Codex(JsonRpc):
    """Its app-server. It searches and patches by commands, as its model is told to: `rg`, and its own `apply_patch`."""

    name = "codex"
    kind = "app-server"
    package = Npm("@openai/codex", "0.169.0")

    @property
    def program(self) -> str:
        return glob.glob(f"{self.package.folder}/node_modules/@openai/codex-*/vendor/*/bin/codex")[0]

    def argv(self) -> list[str]:
        return [self.program, "app-server"]

    def env(self) -> dict[str, str]:
        return super().env() | {"CODEX_HOME": self.home}

    def greet(self, deadline: float) -> None:
        assert self.lines
        self.request(deadline, "initialize", {"clientInfo": {"name": "bench", "title": "bench", "version": "1"}})
        self.lines.send({"method": "initialized"})

    def asked(self, message: dict[str, Any]) -> None:
        pass

    def ask(self, deadline: float, name: str, arguments: dict[str, Any]) -> str:
        answer = self.request(deadline, name, arguments)
        if self.failed(answer):
            raise Refused(answer["stderr"])
        if "dataBase64" in answer:
            return base64.b64decode(answer["dataBase64"]).decode(errors="replace")
        return str(answer.get("stdout") or answer)

    def failed(self, result: dict[str, Any]) -> bool:
        return bool(result.get("exitCode") and result.get("stderr"))  # without a word it is ripgrep that found nothing

    def _exec(self, *command: str, cwd: str = "", policy: str = "dangerFullAccess") -> Spelled:
        where = {"cwd": cwd or self.root, "sandboxPolicy": {"type": policy}}
        return "command/exec", {"command": list(command), "disableOutputCap": True, "timeoutMs": 20_000} | where

    def read(self, path: str) -> Spelled:
        return "fs/readFile", {"path": path}

    def list(self, path: str) -> Spelled:
        return "fs/readDirectory", {"path": path}

    def write(self, path: str, content: str) -> Spelled:
        return "fs/writeFile", {"path": path, "dataBase64": base64.b64encode(content.encode()).decode()}

    def patch(self, text: str, unified: str) -> Spelled:
        return self._exec(self.program, "--codex-run-as-apply-patch", text)

    def edit(self, path: str, old: str, new: str) -> Spelled:
        line = _line(path, old)
        change = f"@@\n-{line}\n+{line.replace(old, new)}\n"
        return self.patch(f"*** Begin Patch\n*** Update File: {path}\n{change}*** End Patch\n", "")

    def glob(self, path: str, pattern: str) -> Spelled:
        return self._exec(program() or "rg", "--files", "--hidden", "-g", pattern, cwd=path)

    def search(self, path: str, text: str) -> Spelled:
        return self._exec(program() or "rg", "--line-number", "--hidden", "-e", text, ".", cwd=path)

    def count(self, path: str, text: str) -> Spelled:
        return self._exec(program() or "rg", "--count", "--hidden", "-e", text, ".", cwd=path)

    def shell(self, command: str) -> Spelled:
        return self._exec("/bin/sh", "-c", command)

    def sandboxed(self, command: str) -> Spelled:
        return self._exec("/bin/sh", "-c", command, policy="workspaceWrite")

    command = sandboxed

    def terminal(self, text: str) -> Spelled:
        raise NotImplementedError

    _terminal = False

    def do(self, operation: str, seconds: float, repeat: int = 1, **arguments: Any) -> Answer:
        if operation == "terminal":
            return self._type(arguments["text"], time.perf_counter() + seconds)
        return super().do(operation, seconds, repeat, **arguments)

    def _type(self, text: str, deadline: float) -> Answer:
        assert self.lines
        if not self._terminal:
            self._terminal = True
            tty = {
                "tty": True,
                "processId": "bench",
                "disableTimeout": True,
                "timeoutMs": None,
                "disableOutputCap": False,
            }
            self.lines.send(
                {"id": 0, "method": "command/exec", "params": self._exec("sh", "-c", "echo ready; exec cat")[1] | tty}
            )
            self._printed("ready", 1, deadline)
        began = time.perf_counter()
        params = {"processId": "bench", "deltaBase64": base64.b64encode(text.encode()).decode()}
        self.lines.send({"id": -1, "method": "command/exec/write", "params": params})
        seen = self._printed(text.strip(), 2, deadline)
        return Answer(seen, (time.perf_counter() - began) * 1000)

    def _printed(self, text: str, times: int, deadline: float) -> str:
        """What the terminal shows until it has shown a text so often."""
        assert self.lines
        seen = ""
        while seen.count(text) < times:
            message = self.lines.next(deadline)
            if "error" in message:
                raise Refused(str(message["error"]))
            if message.get("method") == "command/exec/outputDelta":
                seen += base64.b64decode(message["params"]["deltaBase64"]).decode()
        return seen


class Wcgw(Mcp):
    name = "wcgw"
    package = PyPI("wcgw", "5.6.7")
    thread = ""

    def argv(self) -> list[str]:
        return [self.package.bin("wcgw"), "--shell", "/bin/bash"]

    def greet(self, deadline: float) -> None:
        super().greet(deadline)
        about = {"type": "first_call", "any_workspace_path": self.root, "initial_files_to_read": []}
        text = self.ask(deadline, "Initialize", about | {"task_id_to_resume": "", "mode_name": "wcgw", "thread_id": ""})
        self.thread = text.split("thread_id=", 1)[-1].split()[0].strip(".,") if "thread_id=" in text else ""

    def read(self, path: str) -> Spelled:
        return "ReadFiles", {"file_paths": [path]}

    def shell(self, command: str) -> Spelled:
        return "BashCommand", {"type": "command", "command": command, "thread_id": self.thread}

    command = shell

    def write(self, path: str, content: str) -> Spelled:
        whole = {"percentage_to_change": 100, "text_or_search_replace_blocks": content}
        return "FileWriteOrEdit", {"file_path": path, "thread_id": self.thread} | whole

    def edit(self, path: str, old: str, new: str) -> Spelled:
        line = _line(path, old)
        blocks = f"<<<<<<< SEARCH\n{line}\n=======\n{line.replace(old, new)}\n>>>>>>> REPLACE\n"
        part = {"percentage_to_change": 1, "text_or_search_replace_blocks": blocks}
        return "FileWriteOrEdit", {"file_path": path, "thread_id": self.thread} | part


class DeepAgents(Driven):
    name = "deepagents"
    package = PyPI("deepagents", "0.7.32")
    driver = "with_deepagents"
    confines = True


class Agno(Driven):
    name = "agno"
    package = PyPI("agno", "3.1.10")
    driver = "with_agno"
    confines = True


class LangChain(Driven):
    """Later versions ask for a version of certifi that could not be had."""

    name = "LangChain"
    package = PyPI("langchain", "1.4.7", ("langchain-community==0.4.2",))
    driver = "with_langchain"
    confines = True


class Kimi(Driven):
    """Its glob refuses patterns that begin with `**`."""

    name = "kimi-cli"
    package = PyPI("kimi-cli", "1.52.0", needs=("python3.13", "python3.12"))
    driver = "with_kimi"


class Pi(Driven):
    name = "pi"
    package = Npm("@mariozechner/pi-coding-agent", "0.73.1")
    driver = "with_pi.mjs"


class Gemini(Driven):
    name = "gemini-cli-core"
    package = Npm("@google/gemini-cli-core", "0.61.0")
    driver = "with_gemini.mjs"
    confines = True


PEERS: tuple[type[Contender], ...] = (
    OfficialFilesystem,
    DesktopCommander,
    J0hanz,
    Codex,
    Opencode,
    Gemini,
    Pi,
    DeepAgents,
    Agno,
    LangChain,
    Kimi,
    Wcgw,
)

ABSENT = {
    "Serena": "since version 2 its one tool runs code; it has no file or search tools to call",
    "OpenHands tools": "the version of certifi that they ask for could not be had",
}
"""Peers that are not measured, and why."""
