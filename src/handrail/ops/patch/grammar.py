"""Holds the envelope as a Lark grammar, for models whose output is constrained by one (OpenAI's custom tools).

The grammar describes the strict form. The parser accepts more: padding, text around the envelope and missing marks.
"""

DESCRIPTION = (
    "Edits files by one patch, all of it or none. The input is the patch itself, as text: do not wrap it in JSON."
)
GRAMMAR = r"""
start: "*** Begin Patch\n" section+ "*** End Patch" "\n"?

section: creation | deletion | change

creation: "*** Add File: " PATH ADDED*
deletion: "*** Delete File: " PATH
change: "*** Update File: " PATH (move chunk* | chunk+)
move: "*** Move to: " PATH

chunk: heading+ (CONTEXT | REMOVED | ADDED)+ ending?
heading: "@@\n" | "@@ " ANCHOR
ending: "*** End of File\n"

PATH: /[^\n]+\n/
ANCHOR: /[^\n]+\n/
CONTEXT: / [^\n]*\n/
REMOVED: /-[^\n]*\n/
ADDED: /\+[^\n]*\n/
"""
