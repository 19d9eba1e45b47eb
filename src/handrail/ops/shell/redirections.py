"""Finds the words of a command that has redirections: `xargs < names rm` runs rm.

The grammar attaches words after a redirection to the redirection, and reads the variable in `{fd}>x` as a word.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_CLOSING = frozenset({"<&-", ">&-"})
"""Redirections without a target: every word after them belongs to the command."""
_ENDS_IN_COMMAND = frozenset({"list", "negated_command", "pipeline"})
"""The nodes that the grammar redirects as a whole, although the redirection belongs to their last command."""
_VARIABLE = re.compile(rb"\{[A-Za-z_]\w*(?:\[.*\])?\}", re.DOTALL)


def parts_of(command: "Node") -> "list[Node]":
    """Return the parts of a command, with the words that follow its redirections."""
    inner, parent = command, command.parent
    while parent is not None and parent.type in _ENDS_IN_COMMAND and parent.children[-1] == inner:
        inner, parent = parent, parent.parent
    if parent is None or parent.type != "redirected_statement" or parent.children[0] != inner:
        return command.children
    redirects = parent.children[1:]
    starts = {redirect.start_byte for redirect in redirects}
    words = [*command.children, *(word for redirect in redirects for word in _words(redirect))]
    return [word for word in words if not (word.end_byte in starts and _VARIABLE.fullmatch(word.text or b""))]


def _words(redirect: "Node") -> "list[Node]":
    if redirect.type == "file_redirect":
        named = redirect.children_by_field_name("destination")
        return named if any(child.type in _CLOSING for child in redirect.children) else named[1:]
    within = [word for child in redirect.children if child.type == "file_redirect" for word in _words(child)]
    return [*redirect.children_by_field_name("argument"), *within]
