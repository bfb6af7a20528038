"""The registry store in one SQLite file."""

from headgate.registry.storage.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
