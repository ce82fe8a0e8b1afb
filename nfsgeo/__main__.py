"""`python -m nfsgeo`, the command `nfsgeo`."""

from nfsgeo_cli.main import main

main(prog_name="nfsgeo")
