from collections.abc import Iterator

import pytest
from support.mcp_client import over_http


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start one server for all tests that change nothing."""
    home, root = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("root")
    (root / "a.txt").write_text("one\n")
    with over_http("--root", root, home=home) as (address, _):
        yield address
