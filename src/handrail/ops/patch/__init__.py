"""Patches: the `*** Begin Patch` envelope and unified diffs, read and worked out without touching a file.

`parse` makes a list of `FilePatch` of either form; `apply` works out what becomes of each file, or raises a
fault, and then nothing has happened. Both are pure: the caller reads the files and writes the outcomes.
"""

from handrail.ops.patch.apply import apply
from handrail.ops.patch.model import Action, Chunk, FilePatch, PatchedContent, PatchOutcome
from handrail.ops.patch.parse import parse

__all__ = ["Action", "Chunk", "FilePatch", "PatchOutcome", "PatchedContent", "apply", "parse"]
