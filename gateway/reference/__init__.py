"""Generates the reference pages of command line and settings: `python -m headgate.gateway.reference`."""
