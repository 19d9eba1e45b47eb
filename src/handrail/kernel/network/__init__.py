"""Lets commands reach the hosts that the user named, and no others."""
