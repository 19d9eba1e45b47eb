"""Confines the programs that Handrail itself starts: ripgrep, and workers that read hostile input."""
