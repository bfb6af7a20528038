"""The reference pages of command line and settings, written from the code: `python -m headgate.gateway.reference`."""
