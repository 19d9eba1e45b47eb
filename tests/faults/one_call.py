"""Plays one scene in its own process, so that strace can inject faults: python one_call.py SCENE ROOT."""

import sys

from faults.scenes import SCENES, open_workspace

if __name__ == "__main__":
    with open_workspace(sys.argv[2]) as workspace:
        print(SCENES[sys.argv[1]](workspace))
