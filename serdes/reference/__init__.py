"""Generates the tables of poison reasons in docs/: `python -m headgate.serdes.reference`."""
