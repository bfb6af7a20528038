"""The changes between two versions of a schema, each with its effect on compatibility."""

from headgate.registry.evolution.comparison import Evolution, SchemaChange, compare

__all__ = ["Evolution", "SchemaChange", "compare"]
