"""Schemas of registries and of folders, for `headgate schema`."""
