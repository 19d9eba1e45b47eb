"""Tests the lexical rules for POSIX and Windows paths, on any system."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.model.faults import BadPath, OutsideRoot
from handrail.model.paths import quote, quote_all, split, unquote

LONG = bool(os.environ.get("HANDRAIL_LONG"))
EXAMPLES = settings(max_examples=5000 if LONG else 300, deadline=None, derandomize=not LONG)
POSIX_ROOTS = ("/home/me/project", "/link")
WINDOWS_ROOTS = ("C:\\Users\\me\\project", "D:\\Straße\\İ\\ŉ")

POSIX: dict[str, tuple[str, ...] | str] = {
    "a": ("a",),
    "a/b": ("a", "b"),
    "./a//b/./c": ("a", "b", "c"),
    ".": (),
    "./": (),
    "a/": ("a",),
    "..": ("..",),
    "a/../b": ("a", "..", "b"),
    "../../etc": ("..", "..", "etc"),
    "/home/me/project": (),
    "/home/me/project/": (),
    "/home/me/project/a": ("a",),
    "/home/me/project//a": ("a",),
    "/home/me/project/../other": ("..", "other"),
    "/link/a": ("a",),
    "/home/me/project-evil/a": "outside",
    "/home/me": "outside",
    "/": "outside",
    "//home/me/project/a": "outside",
    "/etc/passwd": "outside",
    "a\\b": ("a\\b",),
    "..\\a": ("..\\a",),
    "C:name": ("C:name",),
    "C:\\x": "outside",
    "c:/x": "outside",
    "\\\\server\\share": "outside",
    "\\\\?\\C:\\x": "outside",
    "\\x": ("\\x",),
    '"C:/x"': ("C:", "x"),
    "./C:/x": ("C:", "x"),
    "CON": ("CON",),
    "name:stream": ("name:stream",),
    " a ": (" a ",),
    "a.": ("a.",),
    "~/x": ("~", "x"),
    '"a\\tb"': ("a\tb",),
    '"\\303\\251"': ("é",),
    '"\\377"': ("\udcff",),
    '"\\056\\056/x"': ("..", "x"),
    '"': ('"',),
    '""': (),
    '"a': ('"a',),
    '"\\q"': ("\\q",),
    '"\\400"': "nul",
    "": "empty",
    "a\0b": "nul",
    '"a\\000b"': "nul",
    "lone\ud800": "not_text",
    "raw\udcff": "not_text",
    "n" * 255: ("n" * 255,),
    "n" * 256: "too_long",
    "é" * 127: ("é" * 127,),
    "é" * 128: "too_long",
    "a/" * 2047 + "b": (*["a"] * 2047, "b"),
    "a/" * 2048: "too_long",
}
WINDOWS: dict[str, tuple[str, ...] | str] = {
    "a\\b": ("a", "b"),
    "a/b\\c": ("a", "b", "c"),
    "..\\a": ("..", "a"),
    "C:\\Users\\me\\project\\a": ("a",),
    "c:/users/ME/project/a": ("a",),
    "C:\\Users\\me\\project": (),
    "C:\\Users\\me\\project-evil\\a": "outside",
    "D:\\x": "outside",
    "D:\\Straße\\İ\\ŉ\\name": ("name",),
    "d:/sTRAßE/İ/ŉ/name": ("name",),
    "D:\\Straße\\İ\\ŉ": (),
    "D:\\Strasse\\İ\\ŉ\\name": "outside",
    "D:\\STRASSE\\İ\\ŉ\\name": "outside",
    "D:\\Straße\\i\u0307\\ŉ\\name": "outside",
    "D:\\Straße\\i\\ŉ\\name": "outside",
    "C:\\U\u017fers\\me\\project\\a": "outside",
    "C:\\Users\\me\\project\\ßİ": ("ßİ",),
    "C:x": "outside",
    "C:": "outside",
    "\\x": "outside",
    "/x": "outside",
    "\\\\server\\share\\x": "outside",
    "\\\\?\\C:\\x": "outside",
    "\\\\.\\pipe\\x": "outside",
    "CON": "reserved",
    "con.txt": "reserved",
    "NUL": "reserved",
    "a\\Com1.log": "reserved",
    "LPT9": "reserved",
    "COM¹": "reserved",
    "CONIN$": "reserved",
    "aux .txt": "reserved",
    "CONSOLE": ("CONSOLE",),
    "COM10": ("COM10",),
    "name:stream": "reserved",
    "a?": "reserved",
    "a*": "reserved",
    "a\tb": "reserved",
    "a.": "reserved",
    "a ": "reserved",
    "...": "reserved",
    ".hidden": (".hidden",),
    "a b": ("a b",),
    "": "empty",
}


def answer(text: str, *, windows: bool) -> tuple[str, ...] | str:
    try:
        return split(text, WINDOWS_ROOTS if windows else POSIX_ROOTS, windows=windows).parts
    except OutsideRoot:
        return "outside"
    except BadPath as fault:
        return fault.why


@pytest.mark.parametrize("text", POSIX, ids=lambda text: ascii(text)[:40])
def test_split_posix_path(text: str) -> None:
    assert answer(text, windows=False) == POSIX[text]


@pytest.mark.parametrize("text", WINDOWS, ids=lambda text: ascii(text)[:40])
def test_split_windows_path(text: str) -> None:
    assert answer(text, windows=True) == WINDOWS[text]


def test_split_trailing_slash_or_dot_wants_directory() -> None:
    wants = {text: split(text, POSIX_ROOTS).wants_directory for text in ("a", "a/", "a/.", "a/..", ".", '"a/"', "a/b")}
    assert wants == {"a": False, "a/": True, "a/.": True, "a/..": True, ".": True, '"a/"': True, "a/b": False}


def test_quote_misleading_names_are_quoted() -> None:
    shown = {
        "plain name.txt": "plain name.txt",
        "é\u4e16": "é\u4e16",
        "a\nb": '"a\\nb"',
        "a\x1b[31m": '"a\\033[31m"',
        "abc\u202etxt.exe": '"abc\\342\\200\\256txt.exe"',
        "\udcff": '"\\377"',
        '"': '"\\""',
        'a"b': 'a"b',
        "a\\b": "a\\b",
        "C:\\x": '"C:\\\\x"',
    }
    assert {name: quote(name) for name in shown} == shown


names = st.binary(max_size=40).map(lambda data: data.decode(errors="surrogateescape")) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=40
)


@EXAMPLES
@given(names)
def test_unquote_reverses_quote(name: str) -> None:
    shown = quote(name)
    shown.encode()
    assert unquote(shown) == name
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in shown)


@EXAMPLES
@given(st.binary(min_size=1, max_size=60).filter(lambda name: not {0, 47} & set(name) and name not in (b".", b"..")))
def test_split_quoted_name_leads_to_same_file(raw: bytes) -> None:
    name = os.fsdecode(raw)
    assert split(quote(name), POSIX_ROOTS).parts == (name,)
    assert split(quote(f"dir/{name}"), POSIX_ROOTS).parts == ("dir", name)


@EXAMPLES
@given(st.text(max_size=80), st.booleans())
def test_split_any_text_gives_clean_parts_or_fault(text: str, windows: bool) -> None:
    found = answer(text, windows=windows)
    if not isinstance(found, str):
        assert not any(part in ("", ".") or "/" in part or "\0" in part or (windows and "\\" in part) for part in found)


ODD = ["plain.txt", 'a"b', '"q"', "C:x", "C:/x", "\\\\h", "é", "\udcff", "a\nb"]


@given(st.lists(st.text() | st.sampled_from(ODD)))
@EXAMPLES
def test_quote_all_equals_quote_of_each(names: list[str]) -> None:
    assert quote_all(names) == [quote(name) for name in names]
