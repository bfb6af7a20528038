"""Schema languages: text to something understood."""
