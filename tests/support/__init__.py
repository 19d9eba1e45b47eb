"""Holds what the tests share: trees, terminals, clients, servers, injected faults and readers of the contracts."""
