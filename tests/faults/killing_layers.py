"""Works in a layer until it is killed: writes, runs commands, forks, applies. Says what is finished, line by line."""

import random
import sys

from handrail import Workspace


def main(root: str, seed: str) -> None:
    chance = random.Random(seed)
    workspace = Workspace(root, approve="auto", layered=True, sandbox="off")
    print("open", flush=True)
    for number in range(10_000):
        workspace.write_bytes(f"kept/{number}", str(number).encode())
        print(f"wrote {number}", flush=True)
        if chance.random() < 0.5:
            for fork in workspace.fork(chance.randint(1, 3)):
                print(f"forked {fork.layer} {number}", flush=True)
                if chance.random() < 0.5:
                    name = fork.layer
                    fork.close()
                    print(f"closed {name} {number}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
