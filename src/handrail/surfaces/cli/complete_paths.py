"""Completes paths: some are left to the shell, the rest lie in the workspace."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    return [_left_to_the_shell(incomplete, "file")]


def directories(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    return [_left_to_the_shell(incomplete, "dir")]


def workspace_paths(ctx: click.Context, _param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Completes a path relative to the root; the shell does it where that is the current directory."""
    if _root(ctx) == ".":
        return [_left_to_the_shell(incomplete, "file")]
    return _beneath_the_root(ctx, incomplete)


def arguments(ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Completes the paths among the parameters of a call. Bash takes `path=src` for three words, the others for one."""
    key, equals, value = incomplete.partition("=")
    if equals:
        return _beneath_the_root(ctx, value, f"{key}=") if key in _paths(ctx) else []
    before = [word for word in ctx.params.get("arguments") or () if word != "="]
    return workspace_paths(ctx, param, incomplete) if before and before[-1] in _paths(ctx) else []


def _beneath_the_root(ctx: click.Context, value: str, prefix: str = "") -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem  # noqa: PLC0415  only where a shell asks

    from handrail.kernel.host.path_completion import paths_beginning  # noqa: PLC0415  the same

    return [CompletionItem(f"{prefix}{path}") for path in paths_beginning(_root(ctx), value)]


def _root(ctx: click.Context) -> str:
    return ctx.params.get("root") or "."  # none where the command would refuse the current directory


def _paths(ctx: click.Context) -> frozenset[str]:
    """The parameters of the tool that are paths."""
    from handrail.dialects import find_dialect, load  # noqa: PLC0415  only where a shell asks

    tool, dialect = ctx.params.get("tool") or "", ctx.params.get("dialect")
    known = [load(name).tools.get(tool) for name in ([dialect] if dialect else find_dialect(tool))]
    return frozenset().union(*(each.params.paths for each in known if each))


def _left_to_the_shell(incomplete: str, kind: str) -> "CompletionItem":
    from click.shell_completion import CompletionItem  # noqa: PLC0415  only where a shell asks

    return CompletionItem(incomplete, type=kind)
