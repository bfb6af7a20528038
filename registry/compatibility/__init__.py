"""Compatibility checks: can a reader schema read data of a writer schema? One checker per language."""
