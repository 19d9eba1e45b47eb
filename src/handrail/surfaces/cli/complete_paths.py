"""Completes paths on the command line: the shell completes some, this module those in the workspace."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Let the shell complete a file name."""
    return [_completed_by_shell(incomplete, "file")]


def directories(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Let the shell complete a directory name."""
    return [_completed_by_shell(incomplete, "dir")]


def workspace_paths(ctx: click.Context, _param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Complete a path relative to the root; if the root is the current directory, the shell does it."""
    if _root(ctx) == ".":
        return [_completed_by_shell(incomplete, "file")]
    return _in_workspace(ctx, incomplete)


def arguments(ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Complete the path parameters of a call. Bash splits `path=src` into three words; other shells do not."""
    key, equals, value = incomplete.partition("=")
    if equals:
        return _in_workspace(ctx, value, f"{key}=") if key in _paths(ctx) else []
    before = [word for word in ctx.params.get("arguments") or () if word != "="]
    return workspace_paths(ctx, param, incomplete) if before and before[-1] in _paths(ctx) else []


def _in_workspace(ctx: click.Context, value: str, prefix: str = "") -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem  # noqa: PLC0415  needed for completion only

    from handrail.kernel.host.path_completion import paths_beginning  # noqa: PLC0415  needed for completion only

    return [CompletionItem(f"{prefix}{path}") for path in paths_beginning(_root(ctx), value)]


def _root(ctx: click.Context) -> str:
    return ctx.params.get("root") or "."  # there is no root if the command would refuse the current directory


def _paths(ctx: click.Context) -> frozenset[str]:
    """Return the names of the tool's path parameters."""
    from handrail.dialects import find_dialect, load  # noqa: PLC0415  needed for completion only

    tool, dialect = ctx.params.get("tool") or "", ctx.params.get("dialect")
    known = [load(name).tools.get(tool) for name in ([dialect] if dialect else find_dialect(tool))]
    return frozenset().union(*(each.params.paths for each in known if each))


def _completed_by_shell(incomplete: str, kind: str) -> "CompletionItem":
    from click.shell_completion import CompletionItem  # noqa: PLC0415  needed for completion only

    return CompletionItem(incomplete, type=kind)
