"""Names the files of the page's server in the state directory, and says whether one may be running."""

import os

from handrail.kernel.host.state_dir import state_home


def page_directory() -> str:
    """Return the directory of the page's server: its socket, its lock, and the secret that processes show."""
    return os.path.join(state_home(), "page")


def page_socket() -> str:
    """Return the path of the socket."""
    return os.path.join(page_directory(), "socket")


def page_secret() -> str:
    """Return the path of the secret, which a command in a sandbox cannot read even where it can reach the socket."""
    return os.path.join(page_directory(), "secret")


_serving = False


def serve_here() -> None:
    """Say that this process serves the page: what it opens itself does not connect to it."""
    global _serving  # noqa: PLW0603  one a process
    _serving = True


def exists(path: str) -> bool:
    """Return whether there is a socket. Every call asks this: it takes about a microsecond."""
    return not _serving and os.access(path, os.F_OK)


def program_name() -> str:
    """Return the program of this process, such as `handrail mcp`, as the page names it."""
    import sys  # noqa: PLC0415  only with a page

    words = [os.path.basename(sys.argv[0] or "python"), *sys.argv[1:2]]
    if words[0] == "__main__.py":
        words[0] = os.path.basename(os.path.dirname(sys.argv[0]))
    return " ".join(words if words[0] == "handrail" and not words[-1].startswith("-") else words[:1])
