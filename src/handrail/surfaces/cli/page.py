"""Implements `handrail page`: serves the page of this user, or prints a new address of the one that runs."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from handrail.model.limits import Limits

if TYPE_CHECKING:
    from handrail.kernel.page.page_listener import PageListener


@click.command("page")
@click.option("--background", is_flag=True, hidden=True, help="Return when the page is served; it ends when unused.")
def command(*, background: bool) -> None:
    """Serve a local web page that shows what agents do and asks for approval.

    Prints the address of the page, which works once. If a server runs already, prints a new address of it.
    """
    from handrail.kernel.page.page_listener import AlreadyRuns, PageListener, address_of_running  # noqa: PLC0415  checks below first

    try:
        listener = PageListener()
    except AlreadyRuns:
        address = address_of_running()
        if address is None:
            raise click.ClickException("the page's server does not answer; end it, then try again") from None
        click.echo(address)
        return
    except OSError as error:
        raise click.ClickException(f"cannot serve the page: {error}") from None
    _serve(listener, background=background)


def _serve(listener: "PageListener", *, background: bool) -> None:
    from handrail.kernel.page.start_page import run_detached  # noqa: PLC0415  only if no server runs
    from handrail.surfaces.page.page_server import PageServer  # noqa: PLC0415  slow to import

    server = PageServer(listener, Limits())

    def serve(tell: Callable[[str], None]) -> None:
        try:
            server.run(tell, ends_when_idle=background)
        finally:
            listener.close()

    if background:
        run_detached(serve)
        listener.leave()
    else:
        serve(_show)


def _show(address: str) -> None:
    click.echo(address)
    click.echo("handrail: open this address in a browser; press Ctrl-C to end the page", err=True)
