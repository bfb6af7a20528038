"""Shared by all HTTP servers: which requests are let in, before any route sees them."""
