"""Validation of pipeline files: one module per section of the file."""
