"""Holds the helpers that tests share: trees, terminals, clients, servers, injected faults, contract readers."""
