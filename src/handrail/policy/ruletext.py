"""The text of a file of rules, changed table by table: what else a person wrote into it stays as it is, in its order.

Lines are looked at, not parsed. A text that is written in an unusual way may come out wrong, so whoever calls compares
what it says with what was meant.
"""

import re

_HEAD = re.compile(r"""\s*\[\[\s*(?:rule|"rule"|'rule')\s*\]\]""")
_SWITCH = r"""(\s*(?:{0}|"{0}"|'{0}')\s*=\s*)(?:true|false)(.*)"""


def added(text: str, table: str) -> str:
    """The text with another table after all that is there."""
    before = text.rstrip("\n")
    return f"{before}\n\n{table}" if before else table


def removed(text: str, number: int) -> str:
    """The text without a table, nor the comment that stands right above it."""
    lines = text.split("\n")
    head, following = _table(lines, number)
    start = head
    while start > 0 and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    end = following
    while end > head and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    while end < len(lines) and not lines[end].strip():
        end += 1
    rest = "\n".join([*lines[:start], *lines[end:]]).rstrip("\n")
    return f"{rest}\n" if rest else ""


def switched(text: str, number: int, key: str, *, on: bool) -> str:
    """The text with a table that says whether its rule is enabled, or another such thing."""
    lines, said = text.split("\n"), "true" if on else "false"
    head, following = _table(lines, number)
    for at in range(head, following):
        if found := re.fullmatch(_SWITCH.format(key), lines[at]):
            lines[at] = f"{found[1]}{said}{found[2]}"
            return "\n".join(lines)
    indent = lines[head][: lines[head].index("[")] if head < following else ""
    return "\n".join([*lines[: head + 1], f"{indent}{key} = {said}", *lines[head + 1 :]])


def _table(lines: list[str], number: int) -> tuple[int, int]:
    """The line of its head, and that of the next; both behind the end where it is not found."""
    heads = [at for at, line in enumerate(lines) if _HEAD.match(line)]
    heads += [len(lines)] * (number + 1 - len(heads))
    return heads[number - 1], (*heads, len(lines))[number]
