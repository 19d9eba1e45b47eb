"""Parses and applies patches in memory: the `*** Begin Patch` envelope and unified diffs.

`parse` turns either form into a list of `FilePatch`. `apply` computes the outcome for each file, or raises a fault.
Both are pure: the caller reads the files and writes the outcomes.
"""

from handrail.ops.patch.apply import apply
from handrail.ops.patch.model import Action, Chunk, FilePatch, PatchedContent, PatchOutcome
from handrail.ops.patch.parse import parse, parse_operation

__all__ = ["Action", "Chunk", "FilePatch", "PatchOutcome", "PatchedContent", "apply", "parse", "parse_operation"]
