"""The HTTP shell of the proxy."""
