#!/bin/sh
# Runs a command with no network but a loopback of its own, where the system allows that: Ray listens on every network.
if unshare -rn ip link set lo up 2>/dev/null; then
    exec unshare -rn sh -c 'ip link set lo up && exec "$@"' sh "$@"
fi
echo 'alone.sh: no network namespace can be made here, so tests on Ray nodes are skipped' >&2
exec "$@"
