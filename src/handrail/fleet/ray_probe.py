"""Tries to talk to a Ray cluster without a token: ends with 0 if the cluster allows that, with 3 if it refuses.

Run as `python -m handrail.fleet.ray_probe ADDRESS`, without the variables that hold a token.
"""

import sys

OPEN, REFUSED = 0, 3


def main() -> int:
    """Ask the head of the cluster a harmless question, and return the exit code."""
    from ray._raylet import GcsClient  # noqa: PLC0415  an extra
    from ray.exceptions import AuthenticationError  # noqa: PLC0415  an extra

    try:
        GcsClient(address=sys.argv[1]).internal_kv_keys(b"handrail", None, 5)
    except AuthenticationError:
        return REFUSED
    return OPEN


if __name__ == "__main__":
    sys.exit(main())
