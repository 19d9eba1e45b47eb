"""python one_call.py SCENE ROOT: play one scene in a process of its own, for a debugger to interfere with."""

import sys

from faults.scenes import SCENES, open_workspace

if __name__ == "__main__":
    with open_workspace(sys.argv[2]) as workspace:
        print(SCENES[sys.argv[1]](workspace))
