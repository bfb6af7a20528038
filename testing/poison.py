"""Payloads that cannot be decoded, one for each reason that depends on bytes and schemas."""

from typing import Final

from headgate.serdes import Reason, RegistryClient, avro_schema
from headgate.serdes.avro import Encoder, parse
from headgate.serdes.avro.column_size import CELL_BYTES, ROW_BYTES_MAX
from headgate.serdes.framing import frame

_WIDE: Final = ", ".join(f'{{"name": "f{number}", "type": ["null", "long"]}}' for number in range(100))
_SCHEMA: Final = """{"type": "record", "name": "Probe", "fields": [
  {"name": "id", "type": "long"},
  {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 0}},
  {"name": "next", "type": ["null", {"type": "record", "name": "Next", "fields": [
    {"name": "next", "type": ["null", "Next"]}
  ]}]},
  {"name": "wide", "type": {"type": "array", "items": ["null", {"type": "record", "name": "Wide", "fields": [WIDE]}]}}
]}""".replace("WIDE", _WIDE)
_ID: Final = b"\x02"
_PRICE: Final = b"\x02\x07"
_END: Final = b"\x00\x00"
_GOOD: Final = _ID + _PRICE + _END
_LEVELS: Final = 200
_NULLS: Final = Encoder(parse('{"type": "array", "items": "int"}')).encode([0] * (ROW_BYTES_MAX // (100 * CELL_BYTES)))
"""One byte per item: 0 is also the null of a union."""
UNKNOWN_SCHEMA_ID: Final = 2**31 - 1
_BODIES: Final = {
    Reason.TRUNCATED: _ID,
    Reason.CORRUPT: b"\xff" * 11,
    Reason.TRAILING_BYTES: _GOOD + b"\x00",
    Reason.INVALID_VALUE: _ID + b"\x04\x7f\xff" + _END,
    Reason.TOO_DEEP: _ID + _PRICE + b"\x02" * _LEVELS + _END,
    Reason.TOO_LARGE: _ID + _PRICE + b"\x00" + _NULLS,
}
_FIXED: Final = {
    Reason.NULL: None,
    Reason.TOO_SHORT: b"\x00\x00",
    Reason.BAD_MAGIC: b"\x07\x00\x00\x00\x01\x02",
    Reason.UNKNOWN_SCHEMA: frame(UNKNOWN_SCHEMA_ID, _GOOD),
}


class PoisonPayloads:
    """Registers the schema `Probe` under `subject` with the first payload that needs it."""

    REASONS: Final = (*_FIXED, *_BODIES)
    """Other reasons depend on the reader or on the registry: stop the registry for REGISTRY_UNAVAILABLE."""

    def __init__(self, registry: RegistryClient, subject: str = "headgate-testing-probe") -> None:
        self._registry = registry
        self._subject = subject

    def good(self) -> bytes:
        """A payload of the same schema that can be decoded."""
        return frame(self._schema_id(), _GOOD)

    def __call__(self, reason: Reason) -> bytes | None:
        """Raises ValueError for a reason that no payload has by itself."""
        if reason in _FIXED:
            return _FIXED[reason]
        if reason not in _BODIES:
            raise ValueError(f"{reason.name} does not depend on the payload; use one of {self.REASONS}")
        return frame(self._schema_id(), _BODIES[reason])

    def _schema_id(self) -> int:
        schema_id = self._registry.register(self._subject, avro_schema(_SCHEMA)).id
        assert schema_id is not None
        return schema_id
