"""Prepares patterns for the built-in engine: its own syntax, and the texts that every matching line contains."""

import re

from handrail.ops.search.regex import Pattern, Token

_FOLDS_OUTSIDE_ASCII = "iks"  # without case, each of these also matches a letter outside ASCII
_USEFUL = 2
_SETS_CASE = re.compile(r"\(\?[msx]*-?[msx]*i")


def for_builtin(pattern: Pattern) -> str:
    """Return the pattern for the `regex` module, which needs a group around a repetition that is repeated."""
    pieces: list[str] = []
    starts: list[int] = []
    atom = 0
    repeated = False
    for token in pattern.tokens:
        if token.kind == "repeat":
            if repeated:
                pieces.insert(atom, "(?:")
                pieces.append(")")
            pieces.append(token.value)
            repeated = True
            continue
        repeated = False
        if token.kind == "open":
            starts.append(len(pieces))
        atom = starts.pop() if token.kind == "close" else len(pieces)
        pieces.append(_escaped(token.value) if token.kind == "literal" else token.value)
    return "".join(pieces)


def required_texts(pattern: Pattern, *, fold_case: bool) -> tuple[str, ...]:
    """Return texts of which every matching line contains at least one; none if they cannot be determined."""
    if any(_SETS_CASE.match(token.text) for token in pattern.tokens if token.kind in ("flags", "open")):
        return ()
    best, _ = _alternatives(pattern.tokens, 0, fold_case=fold_case)
    return best if best and min(map(len, best)) >= _USEFUL else ()


def _alternatives(tokens: tuple[Token, ...], at: int, *, fold_case: bool) -> tuple[tuple[str, ...], int]:
    """Return the best texts for the alternation at `at`, and where it ends; no texts if a branch has none."""
    branches: list[tuple[str, ...]] = []
    while True:
        best, at = _branch(tokens, at, fold_case=fold_case)
        branches.append(best)
        if at == len(tokens) or tokens[at].kind == "close":
            return (tuple(dict.fromkeys(sum(branches, ()))) if all(branches) else ()), at
        at += 1


def _branch(tokens: tuple[Token, ...], at: int, *, fold_case: bool) -> tuple[tuple[str, ...], int]:
    """Return the best texts for one branch of an alternation, and where the branch ends."""
    best: tuple[str, ...] = ()
    run = ""
    while at < len(tokens) and tokens[at].kind not in ("or", "close"):
        token = tokens[at]
        optional = at + 1 < len(tokens) and tokens[at + 1].kind == "repeat" and tokens[at + 1].low == 0
        if token.kind == "literal" and not optional and _is_safe(token.value, fold_case=fold_case):
            run += token.value.lower() if fold_case else token.value
            best = _better(best, (run,))
            if at + 1 < len(tokens) and tokens[at + 1].kind == "repeat":
                run = ""
        elif token.kind == "open":
            inner, at = _alternatives(tokens, at + 1, fold_case=fold_case)
            looks_around = token.text.startswith(("(?=", "(?!", "(?<=", "(?<!"))
            if not looks_around and not _optional_after(tokens, at):
                best = _better(best, inner)
            run = ""
        elif token.kind != "assertion":
            run = ""
        at += 1
    return best, at


def _optional_after(tokens: tuple[Token, ...], close: int) -> bool:
    return close + 1 < len(tokens) and tokens[close + 1].kind == "repeat" and tokens[close + 1].low == 0


def _is_safe(char: str, *, fold_case: bool) -> bool:
    """Return whether `str.lower` finds every text that the engine matches with this character."""
    return not fold_case or (char.isascii() and char.lower() not in _FOLDS_OUTSIDE_ASCII)


def _better(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts whose shortest one is longer."""
    if not one or not other:
        return one or other
    return max(one, other, key=lambda texts: min(map(len, texts)))


def _escaped(char: str) -> str:
    if char.isalnum() or not char.isascii():
        return char
    return f"\\x{ord(char):02x}"
