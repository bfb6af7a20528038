"""Bytes to values and back, through a schema id."""
