"""Reads what commands ask of the network: hosts, addresses, HTTP requests, TLS server names. Pure functions."""
