"""Compatibility of JSON Schemas, by the rules of Confluent's registry, strict or lenient."""

from headgate.registry.compatibility.json_schema.check import check

__all__ = ["check"]
