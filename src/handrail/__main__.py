import sys

if not sys.flags.safe_path:
    del sys.path[0]  # `python -m` puts the directory that it is called in first: a workspace, which may hold anything

from handrail.surfaces.cli import main

main(prog_name="handrail")
