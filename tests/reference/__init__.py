"""Generates the reference pages and tables in docs/ from the code: `python -m tests.reference`."""
