"""Compatibility of Avro schemas, by the rules of Confluent's registry."""

from headgate.registry.compatibility.avro.check import check

__all__ = ["check"]
