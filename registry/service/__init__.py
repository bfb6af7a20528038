"""What the registry does, as functions over a store's view: no HTTP, no SQL, no clock of their own."""

from headgate.registry.service.registry import Registry

__all__ = ["Registry"]
