import os
import sys
from typing import Any

from langchain.agents.middleware import FilesystemFileSearchMiddleware
from langchain_community.agent_toolkits import FileManagementToolkit

from bench.drivers.serve import fits, serve

ROOT = sys.argv[1]
tools: dict[str, Any] = {tool.name: tool for tool in FileManagementToolkit(root_dir=ROOT).get_tools()}
tools |= {tool.name: tool for tool in FilesystemFileSearchMiddleware(root_path=ROOT).tools}


def _in(path: str) -> str:
    return os.path.relpath(path, ROOT)


def _call(name: str, **arguments: Any) -> str:
    return fits(str(tools[name].invoke(arguments)))


def _grep(path: str, text: str, mode: str) -> str:
    return _call("grep_search", pattern=text, path=f"/{_in(path)}", output_mode=mode)


if __name__ == "__main__":
    serve(
        {
            "read": lambda path: _call("read_file", file_path=_in(path)),
            "list": lambda path: _call("list_directory", dir_path=_in(path)),
            "write": lambda path, content: _call("write_file", file_path=_in(path), text=content),
            "glob": lambda path, pattern: _call("glob_search", pattern=pattern, path=f"/{_in(path)}"),
            "search": lambda path, text: _grep(path, text, "content"),
            "count": lambda path, text: _grep(path, text, "count"),
        }
    )
