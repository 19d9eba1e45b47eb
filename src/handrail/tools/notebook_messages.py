"""Words the faults of reading and editing notebooks."""

from handrail.model.notebook_faults import BadNotebook, CellNotFound, CellNotUnique
from handrail.tools.messages import Facts, Message, Words

_SHOWN_CELLS = 20
_WHY = {
    "name": "its name does not end in .ipynb",
    "not_text": "it is not UTF-8 text",
    "not_json": "it is not valid JSON",
    "too_deep": "it is nested too deeply",
    "shape": "it does not have the form of a notebook",
}


def _bad(facts: Facts) -> str:
    detail = f" ({facts['detail']})" if facts["detail"] else ""
    return f"'{facts['path']}' is not a notebook: {_WHY[facts['why']]}{detail}"


def _cells(facts: Facts) -> str:
    known = facts["known"]
    more = ", …" if len(known) > _SHOWN_CELLS else ""
    return f"Use one of: {', '.join(known[:_SHOWN_CELLS])}{more}" if known else "The notebook has no cells"


NOTEBOOKS: Words = {
    BadNotebook: Message("bad_notebook", _bad, "Edit the file as text, or make it again"),
    CellNotFound: Message("cell_not_found", "'{path}' has no cell '{cell}'", _cells),
    CellNotUnique: Message("cell_not_unique", "Several cells of '{path}' have the id '{cell}'", _cells),
}
