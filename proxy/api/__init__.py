"""HTTP API of the proxy."""
