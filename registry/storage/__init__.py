"""Where registered schemas live."""
