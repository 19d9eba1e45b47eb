"""Connects the processes of a user with the page's server: a Unix socket in the state directory."""
