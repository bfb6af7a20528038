"""Compatibility of JSON Schemas, by the rules of Confluent's registry, strict or lenient."""

from headgate.registry.compatibility.json_schema.check import check, check_reserved

__all__ = ["check", "check_reserved"]
