"""A real Chromium in front of a real server: skipped with the reason where one of them is missing."""

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.page_client import RunningPage

if TYPE_CHECKING:
    from support.page_browser import Browser


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave the tests out where Selenium is missing: `make test-page` installs it."""
    return True if collection_path.name.startswith("test_") and find_spec("selenium") is None else None


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Browser"]:
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("chromium and chromedriver are not installed")
    from support.page_browser import Browser

    started = Browser(str(tmp_path_factory.mktemp("chromium")))
    yield started
    started.quit()


@pytest.fixture
def server() -> Iterator[RunningPage]:
    started = RunningPage()
    yield started
    if started.process.poll() is None:
        started.end()


@pytest.fixture
def browser(chromium: "Browser", server: RunningPage) -> "Browser":
    """Return the browser, which shows the page of a new server."""
    chromium.reset()
    chromium.open(server.address)
    return chromium
