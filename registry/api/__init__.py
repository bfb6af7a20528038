"""The HTTP shell of the registry."""
