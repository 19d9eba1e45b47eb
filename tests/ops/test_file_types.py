"""Tests the names of file types."""

import pytest

from handrail.ops.glob.globs import compile_globs
from handrail.ops.search.file_types import _TYPES, globs_of_type


@pytest.mark.parametrize(
    ("name", "globs"),
    [
        ("rs", ("*.rs",)),
        (".ts", ("*.ts",)),
        ("*.py", ("*.py",)),
        ("*py", ("*.py",)),
        ("python", ("*.py", "*.pyi")),
        ("Rust", ("*.rs",)),
        (".python", ("*.python",)),
        ("tar.gz", ("*.tar.gz",)),
        ("c", ("*.c",)),
    ],
)
def test_file_type_extension_or_name_gives_globs(name: str, globs: tuple[str, ...]) -> None:
    assert globs_of_type(name) == globs


def test_every_known_type_compiles() -> None:
    names = [line.split(" ")[0] for line in _TYPES.strip().split("\n") if not line.startswith(" ")]
    assert len(names) > 50
    for name in names:
        compile_globs(globs_of_type(name))
