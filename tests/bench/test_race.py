"""Tests the parts of the race that measure nothing."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from bench.race import install
from bench.race.columns import COLUMNS, Column, Turn
from bench.race.contender import Answer, Contender
from bench.race.place import FOUND, Place
from bench.race.race import race, takes_part
from bench.race.ratios import best_peer, with_ratios
from bench.race.talk import Refused

from handrail import Workspace


class Scripted(Contender):
    """Gives fixed answers without any work."""

    def __init__(
        self,
        name: str,
        role: str = "peer",
        kind: str = "MCP",
        answers: tuple[float, ...] = (1,),
        can: str = "read",
        says: str = "text",
    ) -> None:
        super().__init__("", "")
        self.name, self.role, self.kind, self.answers = name, role, kind, answers
        self.operation, self.says = can, says
        self.asked = 0

    def can(self, operation: str) -> bool:
        return operation == self.operation

    def do(self, operation: str, seconds: float, repeat: int = 1, **arguments: Any) -> Answer:
        self.asked += 1
        if not self.answers:
            raise Refused("no")
        return Answer(self.says, self.answers[min(self.asked, len(self.answers)) - 1])


def _ask(turn: Turn) -> Answer:
    return turn.ask("read")


COLUMN = Column("read", "read", "bare", _ask, "read", ("text",), limits="bare", rounds=3)


def test_race_first_turn_is_not_counted() -> None:
    assert race(COLUMN, [Scripted("a", answers=(900, 1, 2, 3))], Place(""), 100)["a"]["median"] == 2


def test_race_failing_contender_is_noted_and_dropped() -> None:
    good, bad = Scripted("good"), Scripted("bad", answers=())
    figures = race(COLUMN, [good, bad], Place(""), 100)
    assert (figures["bad"], bad.asked, good.asked) == ({"note": "refuses"}, 1, 4)


def test_race_answer_without_expected_text_is_noted() -> None:
    column = Column("read", "read", "bare", _ask, "read", ("something else",), rounds=1)
    assert race(column, [Scripted("a")], Place(""), 1)["a"] == {"note": "something else is not in the answer"}


def test_race_contender_that_never_finds_cannot_win_empty_search() -> None:
    nothing = next(column for column in COLUMNS if column.key == "nothing")
    figures = race(nothing, [Scripted("blind", can="search"), Scripted("sees", can="search", says=FOUND)], Place(""), 1)
    assert figures["blind"] == {"note": f"{FOUND} is not in the answer"}
    assert "median" in figures["sees"]


@pytest.mark.parametrize(
    ("contender", "part"),
    [
        (Scripted("peer"), True),
        (Scripted("peer", kind="in process"), False),
        (Scripted("bare", "limit", "in process"), True),
        (Scripted("another limit", "limit"), False),
    ],
)
def test_takes_part_checks_kind_and_limit(contender: Contender, part: bool) -> None:
    column = Column("read", "read", "bare", _ask, "read", limits="bare", kinds=("MCP",))
    assert takes_part(column, contender) is part


def test_with_ratios_compares_to_limit_and_best_peer() -> None:
    about = {"role": "peer", "confines": False}
    contenders = {"limit": about | {"role": "limit"}, "ours": about | {"role": "handrail"}, "slow": about}
    contenders["fast"] = about
    figures: dict[str, Any] = {
        "limit": {"median": 1},
        "ours": {"median": 3},
        "slow": {"median": 9},
        "fast": {"median": 2},
    }
    results = with_ratios({"contenders": contenders, "columns": {"read": {"limits": "limit", "figures": figures}}})
    ours = results["columns"]["read"]["figures"]["ours"]
    assert (ours["to_limit"], ours["to_best_peer"]) == (3, 1.5)
    contenders["slow"] = about | {"confines": True}
    assert best_peer(figures, contenders, confining=True) == "slow"


def test_place_patch_applies_forth_and_back(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    place.prepare("me")
    before = {path.name: path.read_bytes() for path in Path(place.own("me")).iterdir()}
    with Workspace(str(tmp_path), approve="auto") as workspace:
        assert workspace.call("codex", "apply_patch_json", {"patch": place.patch("me", forth=True)["text"]}).success
    unified = place.patch("me", forth=False)["unified"]
    subprocess.run(["git", "apply", "-p1", "-"], cwd=tmp_path, input=unified.encode(), check=True)
    assert {path.name: path.read_bytes() for path in Path(place.own("me")).iterdir()} == before


def test_columns_have_unique_keys() -> None:
    assert len({column.key for column in COLUMNS}) == len(COLUMNS)


def test_ensure_moved_folder_is_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(install.PyPI, "install", lambda self: made.append(self.folder))

    def ensured(folder: Path) -> list[str]:
        monkeypatch.setattr(install, "FOLDER", str(folder))
        install.ensure(install.PyPI("some", "1"))
        return made

    assert ensured(tmp_path / "a") == ensured(tmp_path / "a") == [f"{tmp_path}/a/some"]
    (tmp_path / "a").rename(tmp_path / "b")
    assert ensured(tmp_path / "b") == [f"{tmp_path}/a/some", f"{tmp_path}/b/some"]
