"""Runs every benchmark: `make bench`."""

from importlib import import_module

from bench.measure import show

MODULES = ("files", "search", "patch", "process", "mcp", "journal")


def main() -> None:
    for name in MODULES:
        show(name, import_module(f"bench.{name}").run())


if __name__ == "__main__":
    main()
