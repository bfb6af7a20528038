"""Generates the broker's reference pages in docs/: `python -m headgate.broker.reference`."""
