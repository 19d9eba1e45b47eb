"""Holds the commands for layers: layer and try."""
