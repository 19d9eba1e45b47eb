"""Unpacks container images into layers of directories, and writes changes as new layers."""
