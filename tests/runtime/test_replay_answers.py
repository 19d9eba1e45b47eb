"""Tests how a replay compares answers: it ignores times, process ids and roots."""

from handrail.replay import comparable, differences


def test_comparable_ignores_times_process_ids_and_roots() -> None:
    told = {
        "execution_time_ms": 1.5,
        "output": {"modified": "2026-01-02T03:04:05.678Z", "path": "/old/a", "text": "Process Group PGID: 12\nPID: 7"},
        "metadata": {"exit_code": 1, "executed_at": 5, "spool": "/state/output/20260102-030405-abcdef/1"},
        "list": ["/old", 2, None, True],
    }
    got = {
        "execution_time_ms": 9,
        "output": {"modified": "2027-11-12T13:14:15Z", "path": "/new/a", "text": "Process Group PGID: 345\nPID: 89"},
        "metadata": {"exit_code": 1, "executed_at": 6, "spool": "/state/output/20270102-030405-012345/1"},
        "list": ["/new", 2, None, True],
    }
    assert comparable(told, {"/old": "<root>"}) == comparable(got, {"/new": "<root>"})


def test_differences_are_named_by_key_path() -> None:
    told = {"a": 1, "b": {"c": [1, {"d": 2}]}, "gone": 1, "e": [1, 2]}
    got = {"a": 1, "b": {"c": [1, {"d": 3}]}, "new": 2, "e": [1]}
    assert list(differences(told, got)) == [
        ("b.c[1].d", 2, 3),
        ("gone", 1, None),
        ("e", [1, 2], [1]),
        ("new", None, 2),
    ]
