"""Starts the page's server for `--page`, and prints its address. Needs no click."""

from collections.abc import Iterable

from handrail.kernel.host.std_streams import file_behind_stderr, say
from handrail.workspace import Workspace


def print_page_address(workspaces: Iterable[Workspace]) -> None:
    """Print an address of the page on standard error; start its server if none runs. A failure stops nothing."""
    from handrail.kernel.page.start_page import start_in_background  # noqa: PLC0415  only with --page

    kept = file_behind_stderr()
    try:
        address = start_in_background()
    except OSError as error:
        say(f"handrail: the page cannot be served: {error.strerror}")
        return
    if kept and any(each.agent_reads(kept) for each in workspaces):
        say(f"handrail: the page is served; its address is not shown, because the agent can read {kept}")
        say("handrail: run `handrail page` for an address")
    else:
        say(f"handrail: the page: {address}")
