from handrail.surfaces.cli import main

main()
