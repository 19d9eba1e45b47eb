"""Keeps file contents for the journal, in append-only packs outside of the workspace."""
