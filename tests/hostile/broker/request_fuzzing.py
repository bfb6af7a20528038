"""Random requests for every API and version that the broker advertises: valid, unusual or malformed.

One seeded `random.Random` generates everything, so that a seed replays a failure. Names, ids and batches are mostly
existing or interesting values: topics of the run, internal topics, path traversal, 32 KiB of text. A uniformly random
request never gets past the first check.
"""

import dataclasses
import datetime
import functools
import io
import random
import struct
import typing
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crc32c import crc32c
from kio.index import load_request_schema
from kio.serial import entity_writer

from headgate.broker.dispatch.handler_table import HANDLERS
from headgate.wire.entities import shape_of
from tests.wire.raw_client import request_header
from tests.wire.record_batches import Batch, NewRecord

TOPICS = ("fuzzed", "fuzzed-2", "fuzzed-compacted")
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
SMALL_NUMBERS = (0, 0, 1, -1, 2, 3, 5, 7, 100, -2, -3, -4, -5, -6)
TEXTS = (
    *TOPICS, *TOPICS, "group", "group", "member", "consumer", "range", "", ".", "..", "../x", "/etc", "a/b", "\x00",
    "ü☃𝕏", "__cluster_metadata", "__consumer_offsets", "a" * 249, "a" * 250, "x" * 32_767, "x" * 40_000, "-1", "1",
    "9" * 40, "retention.ms", "cleanup.policy", "compact", "num.partitions", "log.retention.ms", "headgate.broker",
)  # fmt: skip
OLD_STRING_BYTES_MAX = 32_767
MILLISECONDS = (0, 1, -1, 100, 6_000, 10_000, 30_000, 2**31 - 1, -(2**31))
# Random values of these settings would stop or starve the fuzzer itself.
UNSAFE_CONFIG_VALUES = frozenset({"num.partitions", "log.retention.ms"})


@dataclass
class RequestFuzzer:
    random: random.Random
    topic_ids: Sequence[uuid.UUID] = ()

    def frame(self) -> tuple[int, int, bytes]:
        """Return (API key, version, a frame without its length prefix)."""
        api_key = self.random.choice(sorted(HANDLERS))
        version = self.random.choice(HANDLERS[api_key][0])
        frame = self.sound_frame(api_key, version)
        return api_key, version, self.mutated(frame) if self.random.random() < 0.5 else frame

    def sound_frame(self, api_key: int, version: int, correlation_id: int = 7) -> bytes:
        schema = load_request_schema(api_key, version)
        out = io.BytesIO()
        entity_writer(schema)(out, self._entity(schema))
        return request_header(api_key, version, correlation_id, flexible=schema.__flexible__) + out.getvalue()

    def mutated(self, sound: bytes) -> bytes:
        """Return the frame with a few bytes changed, inserted or removed after the API key and version."""
        draw, frame = self.random, bytearray(sound)
        for _ in range(draw.choice((1, 1, 2, 5))):
            if len(frame) < 10:
                break
            at = draw.randrange(8, len(frame))
            match draw.randrange(6):
                case 0 | 1:
                    frame[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
                case 2:
                    frame[at : at + 4] = draw.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0"))
                case 3:
                    del frame[at : at + draw.randrange(1, 9)]
                case 4:
                    frame[at:at] = draw.choice((draw.randbytes(draw.randrange(1, 9)), b"\xff\xff\xff\xff\x0f"))
                case _:
                    del frame[at:]
        return bytes(frame)

    def batch(self) -> bytes:
        draw = self.random
        records = [
            NewRecord(
                draw.choice((b"value", None, b"x" * 50)),
                draw.choice((None, b"key")),
                timestamp=self._number(64) if draw.random() < 0.1 else 1_700_000_000_000,
            )
            for _ in range(draw.choice((1, 1, 2, 40)))
        ]
        odd: dict[str, Any] = {
            name: self._number(bits)
            for name, bits in (
                ("base_offset", 64), ("magic", 8), ("attributes", 16), ("last_offset_delta", 32),
                ("base_timestamp", 64), ("max_timestamp", 64), ("producer_id", 64), ("producer_epoch", 16),
                ("base_sequence", 32), ("count", 32), ("length", 32),
            )
            if draw.random() < 0.06
        }  # fmt: skip
        codec = "none" if "attributes" in odd else draw.choice(("none", "none", "gzip", "snappy", "lz4", "zstd"))
        if draw.random() < 0.1:
            odd["body"] = draw.randbytes(draw.choice((0, 1, 10, 1000, 20_000)))
        raw = bytearray(Batch(records, codec, **odd).encode())
        if draw.random() < 0.15:
            raw[draw.randrange(len(raw))] = draw.randrange(256)
            if draw.random() < 0.5:
                struct.pack_into(">I", raw, 17, crc32c(bytes(raw[21:])))
        return bytes(raw)

    def _entity(self, schema: Any) -> Any:
        values: dict[str, Any] = {}
        for each, nested, is_array, is_optional in _fields(schema):
            if is_optional and self.random.random() < 0.12:
                values[each.name] = None
            elif is_array:
                count = self.random.choice((0, 1, 1, 1, 2, 3))
                values[each.name] = tuple(self._value(schema, each, nested) for _ in range(count))
            else:
                values[each.name] = self._value(schema, each, nested)
        if "config_operation" in values and values.get("name") in UNSAFE_CONFIG_VALUES:
            values["config_operation"] = 1
        return schema(**values)

    def _value(self, schema: Any, each: "dataclasses.Field[Any]", nested: Any) -> Any:
        draw, kind = self.random, each.metadata.get("kafka_type")
        if nested is not None:
            return self._entity(nested)
        if kind in BITS:
            return self._number(BITS[kind])
        match kind:
            case "bool":
                return draw.random() < 0.5
            case "string":
                text = draw.choice(TEXTS)
                return text if schema.__flexible__ else text[: OLD_STRING_BYTES_MAX // 4]
            case "bytes":
                return draw.choice((b"", b"x", b"\x00\x00\x00\x00\x00\x01\x00\x06fuzzed", draw.randbytes(20)))
            case "records":
                return self.batch()
            case "timedelta_i32" | "timedelta_i64":
                return datetime.timedelta(milliseconds=draw.choice(MILLISECONDS))
            case "uuid":
                unknown = draw.choice((None, uuid.UUID(int=draw.getrandbits(128))))
                return draw.choice(self.topic_ids) if self.topic_ids and draw.random() < 0.7 else unknown
        raise AssertionError(f"no values for {kind}")

    def _number(self, bits: int) -> int:
        edge = 1 << (bits - 1)
        match self.random.randrange(10):
            case 0 | 1:
                return self.random.choice((-edge, edge - 1, edge >> 1))
            case 2:
                return self.random.randint(-edge, edge - 1)
        return self.random.choice(SMALL_NUMBERS)


@functools.cache
def _fields(schema: Any) -> list[tuple["dataclasses.Field[Any]", Any, bool, bool]]:
    hints = typing.get_type_hints(schema)
    return [(each, *shape_of(hints[each.name])) for each in dataclasses.fields(schema)]
