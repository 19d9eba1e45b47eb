import os
import sys

from agno.tools.workspace import Workspace

from bench.drivers.serve import fits, serve

ROOT = sys.argv[1]
tools = Workspace(root=ROOT, max_file_length=1 << 30, max_file_lines=1 << 30)


def _in(path: str) -> str:
    return os.path.relpath(path, ROOT)


if __name__ == "__main__":
    serve(
        {
            "read": lambda path: fits(tools.read_file(_in(path))),
            "page": lambda path, line, count: fits(tools.read_file(_in(path), line, line + count - 1)),
            "list": lambda path: fits(tools.list_files(_in(path))),
            "write": lambda path, content: fits(tools.write_file(_in(path), content)),
            "edit": lambda path, old, new: fits(tools.edit_file(_in(path), old, new)),
            "glob": lambda path, pattern: fits(tools.list_files(_in(path), pattern)),
            "search": lambda path, text: fits(tools.search_content(text, _in(path), 100)),
            "first": lambda path, text, limit: fits(tools.search_content(text, _in(path), limit)),
            "shell": lambda command: fits(tools.run_command([command])),
        }
    )
