"""Decides what commands see of the machine and which names in the workspace they cannot change."""
