"""Reads Jupyter notebooks by cells, and edits single cells so that every other byte of the file stays."""
