"""HTTP API of the registry."""

from headgate.registry.api.app import create_app

__all__ = ["create_app"]
