"""The registry over HTTP."""

from registry.api.app import create_app

__all__ = ["create_app"]
