"""Compatibility of Protobuf schemas, by the rules of Confluent's registry."""

from headgate.registry.compatibility.protobuf.check import check, differences

__all__ = ["check", "differences"]
