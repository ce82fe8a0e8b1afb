"""The command line of nfsgeo."""
