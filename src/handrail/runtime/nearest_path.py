"""Finds the files or directories that a model most likely meant by a path that does not exist here.

Only what a listing or a search would show is named: no protected file, nothing outside the root.
"""

import posixpath
import re
from bisect import bisect_left
from itertools import islice
from typing import TYPE_CHECKING

from handrail.model.faults import (
    AbsoluteDirectory,
    DirectoryNotFound,
    Fault,
    NotAbsolute,
    NotFound,
    OutsideRoot,
    PathFault,
)
from handrail.model.paths import PATH_BYTES, quote, unquote
from handrail.ops.search.scope import FindRequest, Scope
from handrail.runtime.search import permitted

if TYPE_CHECKING:
    from handrail.runtime.session import Services

_NAMED, _LOOKED_AT = 2, 50
_ALIKE, _LONGER, _COMPARED = 0.75, 4, 2000
_SPECIAL = re.compile(r"[*?\[\]{}!\\]")
_LINE_NUMBER = re.compile(r":\d+(?:[:-]\d+)?$")
_MISTAKEN = (NotFound, OutsideRoot, NotAbsolute, AbsoluteDirectory)


def nearest_paths(services: "Services", fault: Fault, mount: str = "") -> list[str]:
    """Return the nearest existing paths, best first; empty for a fault about something else.

    The paths are relative to the root. Those of the tree with a mount begin with its name.
    """
    if not isinstance(fault, _MISTAKEN) or len(fault.path) > PATH_BYTES:
        return []
    kind = "directory" if isinstance(fault, DirectoryNotFound | AbsoluteDirectory) else "file"
    parts = plain_parts(fault.path, services)
    if mount and parts[:1] == [mount.strip("/")]:
        del parts[0]
    if not parts:
        return []
    found = _NearestPaths(services, kind, mount).find(parts)
    return found or _NearestPaths(services, "directory", mount).spelled(parts)


def plain_parts(path: str, services: "Services") -> list[str]:
    """Return the components of a path as it may have been meant: below the root, without `~`, quotes or a scheme."""
    text = unquote(path).strip().strip("`'\"").removeprefix("file://").replace("\\", "/")
    text = _LINE_NUMBER.sub("", text)
    inside = services.boundary.relative_glob(text)
    text = posixpath.normpath(text.removeprefix("~/") if inside is None else inside)
    return [part for part in text.split("/") if part not in ("", ".", "..", "~") and "\0" not in part]


class _NearestPaths:
    def __init__(self, services: "Services", kind: str, mount: str) -> None:
        self._services, self._kind = services, kind
        self._reader, self._top = services.reader_of(mount), f"{mount}/" if mount else ""

    def find(self, parts: list[str]) -> list[str]:
        """Look for the end of the path, then for names that are spelled alike, then for the same name elsewhere."""
        for start in range(len(parts)):
            if self._exists(end := "/".join(parts[start:]), self._kind):
                return [self._top + end]
        return list(dict.fromkeys(self.spelled(parts) + self._elsewhere(parts)))[:_NAMED]

    def spelled(self, parts: list[str]) -> list[str]:
        """Return the path that is spelled alike, if there is one."""
        return [self._top + found] if (found := self._spelled(parts)) else []

    def _exists(self, path: str, kind: str) -> bool:
        try:
            return self._reader.kind(quote(self._top + path)) == kind
        except PathFault:
            return False

    def _spelled(self, parts: list[str]) -> str | None:
        """Follow the path; take the most similar name where a component does not exist."""
        path, number = list(parts), 0
        while (number := self._first_missing(path, number)) < len(path):
            name = self._alike("".join(f"{part}/" for part in path[:number]), path[number], self._kind_of(path, number))
            if name is None:
                return None
            path[number] = name
            number += 1
        return found if self._exists(found := "/".join(path), self._kind) else None

    def _first_missing(self, path: list[str], start: int) -> int:
        """Return which component is the first that does not exist, from `start` on, or the number of components.

        Below a missing component nothing exists, so that few looks are enough in a deep tree.
        """

        def is_missing(number: int) -> bool:
            return not self._exists("/".join(path[: number + 1]), self._kind_of(path, number))

        return bisect_left(range(len(path)), True, lo=start, key=is_missing)

    def _kind_of(self, path: list[str], number: int) -> str:
        return self._kind if number + 1 == len(path) else "directory"

    def _alike(self, place: str, part: str, kind: str) -> str | None:
        from difflib import get_close_matches  # noqa: PLC0415  only when something is wrong

        try:
            names = self._reader.shown_names(quote(self._top + place) or ".")
        except PathFault:
            return None
        likely = (name for name in names if abs(len(name) - len(part)) <= _LONGER)
        folded = {name.casefold(): name for name in islice(likely, _COMPARED)}
        letters = sorted(part.casefold())
        swapped = [name for name in folded if sorted(name) == letters]
        near = swapped + get_close_matches(part.casefold(), folded, _LOOKED_AT, _ALIKE)
        return next((found for each in near if self._exists(place + (found := folded[each]), kind)), None)

    def _elsewhere(self, parts: list[str]) -> list[str]:
        """Return the files or directories of the same name, those with the most components in common first."""
        services, name = self._services, parts[-1]
        if (
            self._top
            or _SPECIAL.search(name)
            or (services.searcher.engine.name == "builtin" and not services.powers.builtin_search)
        ):
            return []
        glob = f"**/{name}" if self._kind == "file" else f"**/{name}/**"
        scope = permitted(Scope((glob,), anywhere=False, fold_case=True), services, "")
        with services.boundary.directory(".") as fd:
            limit = services.limits.nearest_seconds
            found = services.searcher.find(fd, FindRequest(scope, limit=_LOOKED_AT), seconds=limit).files
        if self._kind == "directory":
            found = [path[: at + len(name) + 1] for path in found if (at := _position(path, name)) is not None]
        return sorted(dict.fromkeys(each.strip("/") for each in found), key=lambda path: (-_common(path, parts), path))


def _position(path: str, name: str) -> int | None:
    """Return where a component of this name begins, case ignored, counted with a slash before the path."""
    at = f"/{path}".casefold().find(f"/{name.casefold()}/")
    return None if at < 0 else at


def _common(path: str, parts: list[str]) -> int:
    return len(set(path.split("/")) & set(parts))
