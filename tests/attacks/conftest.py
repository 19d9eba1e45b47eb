from collections.abc import Iterator
from pathlib import Path

import pytest
from attacks.protected import RULES, grow

from handrail import Workspace


@pytest.fixture
def guarded(root: Path) -> Iterator[Workspace]:
    grow(root)
    with Workspace(str(root), approve="auto", protect=RULES) as workspace:
        yield workspace
