"""Tests the order of settings: defaults, user's file, project's file (may only tighten), HANDRAIL_*, flags."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.command_line import handrail, usage_error

from handrail import Workspace
from handrail.errors import SettingsError
from handrail.model.limits import MAY_BE_LOWERED, Limits
from handrail.settings import APPROVE, DURABILITY, SANDBOX, Settings, load

LOOSEST_FIRST = {"approve": APPROVE, "sandbox": SANDBOX, "durability": DURABILITY, "read_only": (False, True)}


def in_force(**sources: Any) -> Settings:
    return load(**sources)[0]


def toml(**values: Any) -> str:
    return "".join(
        f"{key} = {str(value).lower() if value in (True, False) else repr(value)}\n" for key, value in values.items()
    )


def test_settings_defaults_ask_and_protect() -> None:
    assert in_force() == Settings(
        approve="ask",
        read_only=False,
        sandbox="strict",
        durability="full",
        log=None,
        log_level="info",
        readable=(),
        writable=(),
        environment=(),
        guarded=None,
        allow_hosts=(),
        builtin_search=True,
        ignore_files=True,
        hints=True,
        answer_tokens=10_000,
        limits=Limits(),
    )


def test_settings_later_source_overrides_earlier() -> None:
    sources: dict[str, Any] = {}
    assert in_force(**sources).approve == "ask"
    sources["user"] = 'approve = "auto"'
    assert in_force(**sources).approve == "auto"
    sources["project"] = 'approve = "never"'
    assert in_force(**sources).approve == "never"
    sources["env"] = {"HANDRAIL_APPROVE": "host"}
    assert in_force(**sources).approve == "host"
    sources["flags"] = {"approve": "auto"}
    assert in_force(**sources).approve == "auto"
    sources["flags"] = {"approve": None}  # not given
    assert in_force(**sources).approve == "host"


def test_settings_user_file_sets_everything() -> None:
    user = """
        approve = "auto"
        read_only = true
        sandbox = "off"
        durability = "none"
        log = "/somewhere/log"
        log_level = "debug"
        readable = ["/usr/share"]
        writable = []
        environment = ["EDITOR", "PAGER"]
        guarded = [".env"]
        allow_hosts = ["localhost"]
        builtin_search = false
        ignore_files = false
        hints = false
        answer_tokens = 500
        [limits]
        edit_bytes = 5
        rule_seconds = 1
    """
    limits = Limits()._replace(edit_bytes=5, rule_seconds=1.0)
    assert in_force(user=user) == Settings(
        approve="auto",
        read_only=True,
        sandbox="off",
        durability="none",
        log="/somewhere/log",
        log_level="debug",
        readable=("/usr/share",),
        environment=("EDITOR", "PAGER"),
        guarded=(".env",),
        allow_hosts=("localhost",),
        builtin_search=False,
        ignore_files=False,
        hints=False,
        answer_tokens=500,
        limits=limits,
    )
    assert isinstance(in_force(user=user).limits.rule_seconds, float)


def test_settings_variables_and_flags_override_defaults() -> None:
    env = {
        "HANDRAIL_APPROVE": "never",
        "HANDRAIL_READ_ONLY": "Yes",
        "HANDRAIL_SANDBOX": "network",
        "HANDRAIL_DURABILITY": "rename",
        "HANDRAIL_LOG": "x.jsonl",
        "HANDRAIL_LOG_LEVEL": "off",
        "HANDRAIL_READABLE": "/a,/b",
        "HANDRAIL_BUILTIN_SEARCH": "no",
        "HANDRAIL_IGNORE_FILES": "no",
        "HANDRAIL_HINTS": "no",
        "HANDRAIL_ANSWER_TOKENS": "0",
        "HANDRAIL_LIMITS": "no such thing",
        "HANDRAIL_STATE_DIR": "not a setting",
        "HOME": "/",
    }
    assert in_force(env=env) == Settings(
        approve="never",
        read_only=True,
        sandbox="network",
        durability="rename",
        log="x.jsonl",
        log_level="off",
        readable=("/a", "/b"),
        builtin_search=False,
        ignore_files=False,
        hints=False,
        answer_tokens=0,
    )
    assert in_force(env=dict.fromkeys(env, "")) == Settings()
    flags = {"sandbox": "off", "limits": {"edit_bytes": 7}}
    assert in_force(flags=flags) == Settings(sandbox="off", limits=Limits()._replace(edit_bytes=7))


def test_settings_unknown_variable_noted_with_suggestion(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = {
        "HANDRAIL_APROVE": "auto",
        "HANDRAIL_XYZ": "1",
        "HANDRAIL_CONFG_DIR": "/x",
        "HANDRAIL_EMPTY": "",
        "PATH": "/",
    }
    assert load(env=env) == (
        Settings(),
        [
            "unknown variable HANDRAIL_APROVE ignored; did you mean HANDRAIL_APPROVE?",
            "unknown variable HANDRAIL_XYZ ignored",
            "unknown variable HANDRAIL_CONFG_DIR ignored; did you mean HANDRAIL_CONFIG_DIR?",
        ],
    )
    monkeypatch.setenv("HANDRAIL_APROVE", "auto")
    done = handrail("call", "file.list", "--root", str(root))
    said = "handrail: unknown variable HANDRAIL_APROVE ignored; did you mean HANDRAIL_APPROVE?\n"
    assert (done.stderr, done.returncode) == (said, 0)


@pytest.mark.parametrize(("text", "meant"), [("1", True), ("on", True), ("TRUE", True), ("0", False), ("off", False)])
def test_settings_boolean_variable_accepts_words(text: str, meant: bool) -> None:
    assert in_force(user="read_only = true", env={"HANDRAIL_READ_ONLY": text}).read_only is meant


@pytest.mark.parametrize("key", LOOSEST_FIRST)
def test_settings_project_may_only_tighten(key: str) -> None:
    order = LOOSEST_FIRST[key]
    for mine, own in enumerate(order):
        for wanted, asked in enumerate(order):
            settings, notes = load(user=toml(**{key: own}), project=toml(**{key: asked}))
            assert getattr(settings, key) == order[max(mine, wanted)]
            loosened = f".handrail.toml cannot set {key} = {asked!r}: a project may only tighten"
            assert notes == ([loosened] if wanted < mine else [])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("log", "/tmp/elsewhere"),
        ("log_level", "off"),
        ("readable", ["/home"]),
        ("writable", ["/home"]),
        ("environment", ["API_KEY"]),
        ("guarded", []),
        ("allow_hosts", ["localhost"]),
    ],
)
def test_settings_project_cannot_set_log_or_command_access(key: str, value: Any) -> None:
    settings, notes = load(project=toml(**{key: value}))
    assert settings == Settings()
    assert notes == [f".handrail.toml cannot set {key} = {value!r}: a project may only tighten"]


@pytest.mark.parametrize("name", Limits._fields)
def test_settings_project_may_only_lower_listed_limits(name: str) -> None:
    default = getattr(Limits(), name)

    def in_vain(value: float) -> tuple[Limits, list[str]]:
        said = f".handrail.toml cannot set limits.{name} = {type(default)(value)!r}: a project may only tighten"
        return Limits(), [said]

    def asked(value: float) -> tuple[Limits, list[str]]:
        settings, notes = load(project=f"[limits]\n{name} = {value}")
        return settings.limits, notes

    lowered = Limits()._replace(**{name: 0}), list[str]()
    assert asked(0) == (lowered if name in MAY_BE_LOWERED else in_vain(0))
    assert asked(default + 1) == in_vain(default + 1)
    assert asked(default) == (Limits(), [])


def test_settings_lowerable_limits_are_limits() -> None:
    assert set(Limits._fields) > MAY_BE_LOWERED


def test_settings_project_lowers_user_limits_and_raises_none() -> None:
    asked_user = "[limits]\npage_bytes = 100\njournal_days = 5\n"
    settings, notes = load(user=asked_user, project="[limits]\npage_bytes = 50\njournal_days = 4\nline_bytes = 9\n")
    assert settings.limits == Limits(page_bytes=50, journal_days=5, line_bytes=9)
    assert notes == [".handrail.toml cannot set limits.journal_days = 4: a project may only tighten"]
    assert load(user=asked_user, project="[limits]\npage_bytes = 101")[0].limits == Limits(
        page_bytes=100, journal_days=5
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("approve = ", "not valid TOML: Invalid value (at end of document)"),
        (f"approve = {'[' * 5000}{']' * 5000}", "not valid TOML: it is nested too deeply"),
        (f"approve{'.a' * 5000} = 1", "not valid TOML: it is nested too deeply"),
        (
            f"approve = {'[' * 99}{']' * 99}",
            f"approve must be one of auto, host, edit, ask, never, not {'[' * 99}{']' * 99}",
        ),
        (f"approve = 0x{'f' * 5000}", "not valid TOML: a number in it has more than 64 bits"),
        ("colour = 1", "unknown setting 'colour'"),
        ('approve = "always"', "approve must be one of auto, host, edit, ask, never, not 'always'"),
        ("approve = 1", "approve must be one of auto, host, edit, ask, never, not 1"),
        ('approve = ["ask"]', "approve must be one of auto, host, edit, ask, never, not ['ask']"),
        ('read_only = "yes"', "read_only must be true or false, not 'yes'"),
        ("read_only = 1", "read_only must be true or false, not 1"),
        ("log = 3", "log must be the name of a file, not 3"),
        ('log_level = "loud"', "log_level must be one of debug, info, off, not 'loud'"),
        ('readable = "/home"', "readable must be a list of strings, not '/home'"),
        ("readable = [1]", "readable must be a list of strings, not [1]"),
        ("limits = 5", "limits must be a table, not 5"),
        ("[limits]\nbananas = 5", "unknown limit 'bananas'"),
        ("[limits]\n__class__ = 5", "unknown limit '__class__'"),
        ('[limits]\nedit_bytes = "5"', "limits.edit_bytes must be a number, 0 or larger, not '5'"),
        ("[limits]\nedit_bytes = -1", "limits.edit_bytes must be a number, 0 or larger, not -1"),
        ("[limits]\nedit_bytes = true", "limits.edit_bytes must be a number, 0 or larger, not True"),
        ("[limits]\nrule_seconds = inf", "limits.rule_seconds must be a number, 0 or larger, not inf"),
        ("[limits]\nrule_seconds = nan", "limits.rule_seconds must be a number, 0 or larger, not nan"),
    ],
)
def test_settings_mistake_in_file_names_file_and_key(text: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as user:
        load(user=text, user_file="/home/me/config.toml")
    assert str(user.value) == f"/home/me/config.toml: {complaint}"
    with pytest.raises(SettingsError) as project:
        load(project=text)
    assert str(project.value) == f".handrail.toml: {complaint}"


def test_settings_mistake_names_variable_or_flag() -> None:
    with pytest.raises(SettingsError, match=r"^HANDRAIL_APPROVE: approve must be one of .*, not 'yes'$"):
        load(env={"HANDRAIL_APPROVE": "yes"})
    with pytest.raises(SettingsError, match=r"^HANDRAIL_READ_ONLY: read_only must be true or false, not 'maybe'$"):
        load(env={"HANDRAIL_READ_ONLY": "maybe"})
    with pytest.raises(SettingsError, match=r"^unknown setting 'colour'$"):
        load(flags={"colour": True})


def test_workspace_reads_user_and_project_settings(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(home))
    (home / "config.toml").write_text('approve = "auto"\n[limits]\npage_bytes = 9\n')
    (root / ".handrail.toml").write_text('approve = "never"\nsandbox = "off"\n')
    with Workspace(str(root)) as workspace:
        assert (workspace.settings.approve, workspace.settings.limits.page_bytes) == ("never", 9)
        assert workspace.warnings == [".handrail.toml cannot set sandbox = 'off': a project may only tighten"]
    (home / "config.toml").write_text("aprove = 1\n")
    assert usage_error(handrail("call", "file.list", "--root", str(root))) == (
        f"{home}/config.toml: unknown setting 'aprove'; did you mean approve?"
    )


def test_settings_unreadable_file_is_an_error(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to open: a file that cannot be read may tighten something."""
    project = root / ".handrail.toml"
    project.write_bytes(b"approve = '\xff'")
    with pytest.raises(SettingsError, match=r"^\.handrail\.toml cannot be read: 'utf-8' codec can't decode byte 0xff"):
        Workspace(str(root))
    project.unlink()
    project.symlink_to("/etc/hostname")
    with pytest.raises(
        SettingsError, match=r"^\.handrail\.toml cannot be read: Path '.handrail.toml' is outside the workspace$"
    ):
        Workspace(str(root))
    project.unlink()
    os.mkfifo(project)
    said = ".handrail.toml cannot be read: '.handrail.toml' is a FIFO, not a regular file"
    done = handrail("call", "file.list", "--root", str(root), "--json")
    assert done.stderr.endswith(f"Error: {said}\n")
    assert json.loads(done.stdout) == {"success": False, "error": {"code": "usage_error", "message": said}}
    project.unlink()
    (tmp_path / "home" / "config.toml").mkdir(parents=True)
    monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(tmp_path / "home"))
    with pytest.raises(SettingsError, match=r"config\.toml cannot be read: \[Errno 21\] Is a directory"):
        Workspace(str(root))


def test_settings_too_deep_nesting_is_usage_error(root: Path) -> None:
    (root / ".handrail.toml").write_text(f"rule = {'[' * 5000}{']' * 5000}")
    said = ".handrail.toml: not valid TOML: it is nested too deeply"
    assert usage_error(handrail("call", "file.list", "--root", str(root))) == said


@pytest.mark.parametrize(
    ("user", "project", "expected"), [(100, 50, 50), (100, 200, 100), (100, 0, 100), (0, 50, 50), (0, 0, 0)]
)
def test_answer_tokens_project_may_only_lower(user: int, project: int, expected: int) -> None:
    settings = in_force(user=f"answer_tokens = {user}", project=f"answer_tokens = {project}")
    assert settings.answer_tokens == expected


@pytest.mark.parametrize("value", ["-1", "1.5", "true", '"many"', str(2**63)])
def test_answer_tokens_bad_value_is_error(value: str) -> None:
    with pytest.raises(SettingsError):
        in_force(user=f"answer_tokens = {value}")
    with pytest.raises(SettingsError, match="answer_tokens must be a whole number"):
        in_force(env={"HANDRAIL_ANSWER_TOKENS": value.strip('"')})


@pytest.mark.parametrize(
    ("user", "project", "hosts", "level"),
    [
        ({}, ["a.test"], (), "strict"),
        ({"sandbox": "network"}, ["a.test"], ("a.test",), "hosts"),
        ({"network": ["a.test"]}, ["a.test", "b.test"], ("a.test",), "hosts"),
        ({"network": ["*.a.test"]}, ["x.a.test"], ("x.a.test",), "hosts"),
        ({"network": ["x.a.test"]}, ["*.a.test"], ("x.a.test",), "hosts"),
        ({"network": ["a.test"]}, ["*.a.test"], (), "strict"),
        ({"network": ["a.test"], "sandbox": "network"}, ["b.test"], (), "strict"),
        ({"network": ["a.test"]}, ["a.test:22"], (), "strict"),
        ({"network": ["a.test"]}, ["a.test:443"], ("a.test:443",), "hosts"),
        ({"network": ["a.test"]}, [], ("a.test",), "hosts"),
        ({"sandbox": "off"}, ["a.test"], (), "off"),
    ],
)
def test_network_project_may_only_name_fewer_hosts(
    user: dict[str, Any], project: list[str], hosts: tuple[str, ...], level: str
) -> None:
    settings, notes = load(user=toml(**user), project=f"network = {json.dumps(project)}")
    assert (settings.network, settings.powers.level) == (hosts, level)
    assert bool(notes) == (set(hosts) != set(project))


def test_network_in_any_order_with_sandbox_is_the_same() -> None:
    lines = ['sandbox = "strict"', 'network = ["a.test"]']
    for project in ("\n".join(lines), "\n".join(reversed(lines))):
        assert load(user=toml(sandbox="network"), project=project)[0].powers.level == "hosts"


@pytest.mark.parametrize("host", ["https://a.test", "a.test/x", "127.1", "*.10.0.0.1", "user@a.test", "a.*.test", ""])
def test_network_bad_host_is_an_error(host: str) -> None:
    with pytest.raises(SettingsError, match="is not a host"):
        load(flags={"network": [host]})
