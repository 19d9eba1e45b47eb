"""Tests that notebooks are read by cells, and that an edit of one cell leaves every other byte alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.model.limits import Limits
from handrail.model.notebook_faults import BadNotebook, CellNotFound, CellNotUnique
from handrail.ops.notebook import edit
from handrail.ops.notebook.notebook import Notebook, parse
from handrail.ops.notebook.notebook_text import show

ODD = b"""{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {"b": 1.50e+2, "a": 1E5, "big": 123456789012345678901234567890},
   "source": [
    "# Caf\\u00e9 \\ud83d\\ude00\\n",
    "text"
   ]
  },
  {
   "id"  :  "code1"  ,
   "cell_type": "code",
   "execution_count": 3,   "metadata": {"x":[1,2 ,3]},
   "outputs": [
    {"name": "stdout", "output_type": "stream", "text": ["a\\n", "b\\n"]},
    {"data": {"text/plain": "7", "image/png": "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAIAAAA="},
     "output_type": "execute_result", "execution_count": 3, "metadata": {}}
   ],
   "source": "x = 1\\ny = 2"
  }
 ],
 "metadata": {"language_info": {"name": "julia"}},
 "nbformat": 4,
 "nbformat_minor": 5
}
"""


def book(data: bytes = ODD) -> Notebook:
    return parse("n.ipynb", data)


def dumped(cells: list[dict[str, Any]], minor: int = 5, **options: Any) -> bytes:
    whole = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor}
    return (json.dumps(whole, **options) + "\n").encode()


def cell(name: str, source: Any = "x", kind: str = "code") -> dict[str, Any]:
    rest: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": name, "metadata": {}, **rest, "source": source}


def test_replace_list_source_keeps_every_other_byte() -> None:
    made = edit.replace(book(), book().cells[0], "# New é\nline\n", None)
    old = b'[\n    "# Caf\\u00e9 \\ud83d\\ude00\\n",\n    "text"\n   ]'
    new = b'[\n    "# New \\u00e9\\n",\n    "line\\n"\n   ]'
    assert made.data == ODD.replace(old, new)
    assert (made.name, made.kind, made.old_source) == ("intro", "markdown", "# Café 😀\ntext")


def test_replace_text_source_keeps_outputs_and_stays_text() -> None:
    made = edit.replace(book(), book().find("code1"), 'print("hi")\n', None)
    assert made.data == ODD.replace(b'"x = 1\\ny = 2"', b'"print(\\"hi\\")\\n"')


def test_replace_with_same_source_changes_nothing() -> None:
    assert edit.replace(book(), book().find("code1"), "x = 1\ny = 2", None).data == ODD


def test_replace_code_by_markdown_drops_outputs_only() -> None:
    made = edit.replace(book(), book().find("code1"), "words", "markdown")
    assert json.loads(made.data)["cells"][1] == {
        "id": "code1",
        "cell_type": "markdown",
        "metadata": {"x": [1, 2, 3]},
        "source": "words",
    }
    assert b'"id"  :  "code1"' in made.data
    assert made.data.startswith(ODD[: ODD.index(b'   "id"  :')])
    assert made.data.endswith(ODD[ODD.index(b'\n  }\n ],\n "metadata"') :])


def test_replace_markdown_by_code_gets_outputs_and_count() -> None:
    made = edit.replace(book(), book().find("intro"), "1 + 1", "code")
    found = json.loads(made.data)["cells"][0]
    assert (found["cell_type"], found["outputs"], found["execution_count"]) == ("code", [], None)
    assert (found["id"], found["source"]) == ("intro", ["1 + 1"])
    assert b'"metadata": {"b": 1.50e+2, "a": 1E5, "big": 123456789012345678901234567890}' in made.data


def test_insert_has_style_of_file_and_own_id() -> None:
    made = edit.insert(book(), book().find("intro"), "z = 3\nz", "code")
    new = (
        f',\n  {{\n   "cell_type": "code",\n   "execution_count": null,\n   "id": "{made.name}",\n'
        '   "metadata": {},\n   "outputs": [],\n   "source": [\n    "z = 3\\n",\n    "z"\n   ]\n  }'
    )
    at = ODD.index(b',\n  {\n   "id"  :')
    assert made.data == ODD[:at] + new.encode() + ODD[at:]
    assert len(made.name) == 8


def test_insert_first_and_into_empty_notebook() -> None:
    first = edit.insert(book(), None, "# T", "markdown")
    assert [each["id"] for each in json.loads(first.data)["cells"]] == [first.name, "intro", "code1"]
    assert first.data.endswith(ODD[ODD.index(b'{\n   "cell_type": "markdown",\n   "id": "intro"') :])
    empty = book(b'{\n "cells": [],\n "metadata": {},\n "nbformat": 4,\n "nbformat_minor": 4\n}')
    made = edit.insert(empty, None, "a\nb", "markdown")
    assert made.data == (
        b'{\n "cells": [\n  {\n   "cell_type": "markdown",\n   "metadata": {},\n   "source": [\n'
        b'    "a\\n",\n    "b"\n   ]\n  }\n ],\n "metadata": {},\n "nbformat": 4,\n "nbformat_minor": 4\n}'
    )
    assert made.name == "cell-0"


@pytest.mark.parametrize("number", [0, 1, 2])
def test_delete_takes_cell_and_its_comma_only(number: int) -> None:
    cells = [cell(f"c{n}") for n in range(3)]
    data = dumped(cells, indent=1)
    made = edit.delete(book(data), book(data).cells[number])
    assert made.data == dumped([each for each in cells if each["id"] != f"c{number}"], indent=1)


def test_delete_only_cell_leaves_empty_array() -> None:
    data = dumped([cell("one")], indent=1)
    assert edit.delete(book(data), book(data).cells[0]).data == dumped([], indent=1)


STYLES = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 0, 1, 2, 4, "\t"]),
        "ensure_ascii": st.booleans(),
        "separators": st.sampled_from([None, (",", ":"), (", ", ": "), (" , ", " : ")]),
    }
)
SOURCES = st.one_of(st.text(), st.lists(st.text(), max_size=3))


@given(style=STYLES, sources=st.lists(SOURCES, min_size=1, max_size=4), new=st.text(), data=st.data())
def test_any_edit_changes_one_cell_and_no_other_byte(style: Any, sources: list[Any], new: str, data: Any) -> None:
    kinds = [data.draw(st.sampled_from(["code", "markdown", "raw"])) for _ in sources]
    cells = [cell(f"c{n}", source, kind) for n, (source, kind) in enumerate(zip(sources, kinds, strict=True))]
    before = dumped(cells, **style)
    parsed = book(before)
    number = data.draw(st.integers(0, len(cells) - 1))
    target = parsed.cells[number]
    replaced = json.loads(edit.replace(parsed, target, new, None).data)["cells"]
    assert "".join(replaced[number].pop("source")) == new
    assert [*replaced[:number], *replaced[number + 1 :]] == [*cells[:number], *cells[number + 1 :]]
    inserted = edit.insert(parsed, target, new, "code").data
    after = json.loads(inserted)["cells"]
    assert "".join(after.pop(number + 1)["source"]) == new
    assert after == cells
    assert json.loads(edit.delete(parsed, target).data)["cells"] == [*cells[:number], *cells[number + 1 :]]
    for changed in (edit.replace(parsed, target, new, None).data, inserted, edit.delete(parsed, target).data):
        start, end = target.spot.start, target.spot.end
        text, made = before.decode(), changed.decode()
        assert made.startswith(text[: text.rindex("{", 0, start + 1)].rstrip(" \n\t,"))
        assert made.endswith(text[end:].lstrip(" \n\t,"))


@given(style=STYLES, source=st.text(min_size=1), new=st.text(min_size=1))
def test_edit_and_edit_back_gives_same_bytes(style: Any, source: str, new: str) -> None:
    lines = edit.lines_of(source)
    before = dumped([cell("a", lines), cell("b")], **style)
    if style["ensure_ascii"] and source.isascii():
        new = new.encode("ascii", "ignore").decode() or "x"
    there = edit.replace(book(before), book(before).cells[0], new, None).data
    back = edit.replace(book(there), book(there).cells[0], source, None).data
    if style["ensure_ascii"] is source.isascii() or not style["ensure_ascii"]:
        assert json.loads(back) == json.loads(before)
    if (source.isascii() and "\x7f" not in source) or not style["ensure_ascii"]:
        assert back == before


def test_format_three_is_read_and_edited_by_input() -> None:
    cells = [
        {"cell_type": "heading", "level": 1, "metadata": {}, "source": ["T"]},
        {
            "cell_type": "code",
            "collapsed": False,
            "input": ["a = 1\n", "a"],
            "language": "python",
            "metadata": {},
            "outputs": [{"output_type": "pyout", "prompt_number": 1, "text": ["1"], "png": "aaaa"}],
            "prompt_number": 1,
        },
    ]
    whole = {"metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": cells}]}
    data = json.dumps(whole, indent=1).encode()
    parsed = book(data)
    shown = show(parsed, 0, None, Limits())[0]
    assert [each.source for each in shown] == ["T", "a = 1\na"]
    assert shown[1].outputs == ["1\n[image/png, 3 bytes]"]
    made = edit.replace(parsed, parsed.find("cell-1"), "b", None)
    assert made.data == data.replace(b'"a = 1\\n",\n      "a"', b'"b"')
    added = edit.insert(parsed, parsed.cells[1], "c", "code")
    new = json.loads(added.data)["worksheets"][0]["cells"][2]
    assert new == {
        "cell_type": "code",
        "collapsed": False,
        "input": ["c"],
        "language": "python",
        "metadata": {},
        "outputs": [],
    }
    assert json.loads(edit.replace(parsed, parsed.cells[1], "w", "markdown").data)["worksheets"][0]["cells"][1] == {
        "cell_type": "markdown",
        "metadata": {},
        "source": ["w"],
    }


def test_cells_without_ids_have_numbers() -> None:
    data = dumped([{"cell_type": "code", "source": "a"}, cell("b")], minor=4)
    parsed = book(data)
    assert [parsed.name(each) for each in parsed.cells] == ["cell-0", "b"]
    assert parsed.find("cell-0").number == 0
    assert parsed.find("cell-1").number == 1
    with pytest.raises(CellNotFound):
        parsed.find("cell-2")


def test_duplicate_ids_are_refused_and_numbers_work() -> None:
    parsed = book(dumped([cell("same"), cell("same"), cell("cell-0")]))
    with pytest.raises(CellNotUnique) as caught:
        parsed.find("same")
    assert caught.value.known == ["cell-0", "cell-1"]
    assert parsed.find("cell-1").number == 1
    assert parsed.find("cell-0").number == 2  # an id goes before a number


def test_show_outputs_streams_results_images_and_errors() -> None:
    outputs = [
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[31mred\x1b[0m", "line"]},
        {"output_type": "stream", "name": "stdout", "text": "o" * 30_000},
        {"output_type": "stream", "name": "stdout", "text": "later"},
    ]
    shown, more = show(book(dumped([cell("a") | {"outputs": outputs}])), 0, None, Limits())
    assert shown[0].outputs[0] == "red\nline"
    assert "characters not shown" in shown[0].outputs[1]
    assert len(shown[0].text) < 11_000
    assert shown[0].outputs[2] == "[1 more outputs are not shown]"
    assert not more
    assert show(book(), 1, 1, Limits())[0][0].outputs == ["a\nb", "7\n[image/png, 2x3 pixels, 30 bytes]"]


def test_show_stops_at_limit_and_says_so() -> None:
    parsed = book(dumped([cell(f"c{n}", "x" * 1000) for n in range(400)]))
    shown, more = show(parsed, 0, None, Limits())
    assert 200 < len(shown) < 300
    assert more
    assert show(parsed, 399, None, Limits())[1] is False


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not_json"),
        (b"{", "not_json"),
        (b'{"cells": [}', "not_json"),
        (b'{"cells": []} x', "not_json"),
        (b'{"cells": [{}', "not_json"),
        (b'{"cells" []}', "not_json"),
        (b"{1: 2}", "not_json"),
        (b"\xff\xfe", "not_text"),
        (b"[]", "shape"),
        (b"{}", "shape"),
        (b'{"cells": {}}', "shape"),
        (b'{"cells": [1]}', "shape"),
        (b'{"worksheets": [1]}', "shape"),
        (b'{"worksheets": []}', "shape"),
        (b'{"cells": [' + b"[" * 100_000, "too_deep"),
        (b'{"cells": [], "metadata": ' + b'{"a":' * 100_000, "too_deep"),
    ],
)
def test_parse_what_is_no_notebook_raises_reason(data: bytes, why: str) -> None:
    with pytest.raises(BadNotebook) as caught:
        book(data)
    assert caught.value.why == why


@pytest.mark.parametrize("wrong", [1, None, True, {}, [1], "x", [[]], 1e400])
@pytest.mark.parametrize("name", ["source", "outputs", "cell_type", "id", "metadata", "execution_count"])
def test_wrong_types_in_cell_are_shown_and_edited(name: str, wrong: Any) -> None:
    data = dumped([cell("a") | {name: wrong}, cell("b")])
    parsed = book(data)
    assert len(show(parsed, 0, None, Limits())[0]) == 2
    made = edit.replace(parsed, parsed.cells[0], "new", "code")
    assert "".join(json.loads(made.data)["cells"][0]["source"]) == "new"


def test_lone_surrogates_and_huge_numbers_survive() -> None:
    data = dumped([cell("a", "\ud800 x"), cell("b")]).replace(b'"nbformat": 4', b'"nbformat": 4, "n": ' + b"9" * 9000)
    parsed = book(data)
    "".join(each.text for each in show(parsed, 0, None, Limits())[0]).encode()
    made = edit.replace(parsed, parsed.cells[1], "y", None)
    assert made.data == data.replace(b'"x"', b'"y"').replace(b'\\ud800 "y"', b'\\ud800 "x"')


def test_byte_order_mark_and_crlf_stay() -> None:
    data = b"\xef\xbb\xbf" + dumped([cell("a", ["x\n", "y"])], indent=1).replace(b"\n", b"\r\n")
    made = edit.replace(book(data), book(data).cells[0], "z\nw", None)
    assert made.data == data.replace(b'"x\\n"', b'"z\\n"').replace(b'"y"', b'"w"')
    added = edit.insert(book(data), book(data).cells[0], "z", "code").data
    assert added.count(b"\n") == added.count(b"\r\n")
