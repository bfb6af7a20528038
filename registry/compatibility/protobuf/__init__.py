"""Compatibility of Protobuf schemas, by the rules of Confluent's registry."""

from headgate.registry.compatibility.protobuf.check import check, check_reserved, differences

__all__ = ["check", "check_reserved", "differences"]
