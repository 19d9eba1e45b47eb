from handrail.surfaces.cli import main

main(prog_name="handrail")
