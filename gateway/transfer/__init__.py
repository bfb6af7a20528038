"""Copies topics to files and back: `headgate topic export` and `headgate topic import`."""
