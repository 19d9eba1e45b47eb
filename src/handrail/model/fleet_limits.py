"""Holds the numbers of fleets. The page docs/fleet.md lists them."""

from handrail.model.limits import GIB, MIB

FRAME_BYTES = 256 * MIB
"""The longest message between a fleet and a host."""
STATE_BYTES = 64 * MIB
"""The most bytes that may differ from the tree in a state that is saved from time to time."""
SNAPSHOT_BYTES = 160 * MIB
"""The most bytes that may differ from the tree in a snapshot; packed, it must fit into a message."""
TREE_CACHE_BYTES = 20 * GIB
"""The most bytes of unpacked trees that a node keeps; the trees that were not used for longest are deleted first."""
TREE_FILES = 1_000_000
"""The most files, links and directories in one tree."""
TREE_BYTES = 64 * GIB
"""The most bytes in one tree."""
CHECKPOINT_CALLS = 10
"""The most calls that a lost host costs: after so many, a workspace is saved again."""
PER_HOST = 64
"""The most workspaces of one host."""
PROCESSORS_PER_HOST = 2
"""How many processors get one host."""
FREE_MEMORY_BYTES = 512 * MIB
"""A host with less free memory opens no workspace."""
FREE_PROCESSES = 256
"""A host with room for fewer processes opens no workspace."""
FREE_FILES = 256
"""A host with room for fewer open files opens no workspace."""
BUSY_SECONDS = 0.5
"""How long a fleet waits before it asks a host again that had no room."""
AVOID_SECONDS = 15.0
"""How long no host is started on a node where one died, as long as there are others."""
PING_SECONDS = 5.0
"""How often a fleet asks each host whether it lives."""
SILENT_SECONDS = 45.0
"""A host that answers nothing for so long counts as dead."""
LEASE_SECONDS = 120.0
"""A host that hears nothing for so long ends itself, with all its workspaces."""
START_SECONDS = 90.0
"""How long a host may take to start."""
DEATHS = 10
"""A task is given up when so many hosts died under it."""
CALL_BATCH = 1000
"""The most calls in one batch."""
GRACE_SECONDS = 10.0
"""How long an episode over its time limit may take to end, before its host is ended."""
PRINTED_CHARS = 1_000_000
"""The most characters of one episode's own output that its log keeps."""
STATUS_SECONDS = 1.0
"""How often a run writes how far it is."""
QUIET_SECONDS = 15.0
"""How often a run without a terminal prints how far it is."""
EVENT_SECONDS = 10.0
"""How long a host on a cluster waits before it says that nothing has happened."""
HEAD_SECONDS = 5.0
"""How long the head of a cluster may take to answer."""
END_SECONDS = 20.0
"""How long a host may take to end by itself."""
