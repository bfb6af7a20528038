"""The use cases of the registry, as functions that take a store. They do not know HTTP, SQL or the clock."""

from headgate.registry.service.registry import Registry

__all__ = ["Registry"]
