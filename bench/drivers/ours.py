"""Handrail in process: the whole call, from parameters to envelope."""

import os
import sys
from functools import cache, partial
from typing import Any

from bench.drivers.serve import serve
from bench.race.spelling import Handrail
from handrail import Workspace

SAME = ("read", "page", "list", "write", "edit", "patch", "glob", "search", "first", "count", "sandboxed", "terminal")


class Ours(Handrail):
    def __init__(self, root: str, **flags: Any) -> None:
        self.root = root
        self.workspace = Workspace(root, approve="auto", **flags)
        self._started = False

    def do(self, operation: str, **arguments: Any) -> Any:
        if operation == "terminal" and not self._started:
            self._started = True
            self._call(*self.start_terminal())
        return self._call(*getattr(self, operation)(**arguments))

    def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        result = self.workspace.call(self.dialect_of(name), name, arguments)
        if not result.success:
            raise RuntimeError(str(result.output))
        return result.output


def main() -> None:
    root = os.path.realpath(sys.argv[1])
    strict = Ours(root)
    unconfined = cache(lambda: Ours(root, sandbox="off"))
    operations = {name: partial(strict.do, name) for name in SAME}
    serve(operations | {"shell": lambda **arguments: unconfined().do("sandboxed", **arguments)})


if __name__ == "__main__":
    main()
