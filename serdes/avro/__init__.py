"""Avro, one payload at a time: schemas, their resolution, a strict decoder and encoder."""

from serdes.avro.binary import Fault
from serdes.avro.decoder import DEPTH_MAX, ZERO_SIZE_ITEMS_MAX, Decoder, decode
from serdes.avro.encoder import Encoder
from serdes.avro.json_encoding import JsonEncoding
from serdes.avro.logical import Duration, Nanoseconds
from serdes.avro.resolution import resolve
from serdes.avro.schema import Schema, parse
from serdes.errors import EncodeError

__all__ = [
    "DEPTH_MAX",
    "ZERO_SIZE_ITEMS_MAX",
    "Decoder",
    "Duration",
    "EncodeError",
    "Encoder",
    "Fault",
    "JsonEncoding",
    "Nanoseconds",
    "Schema",
    "decode",
    "parse",
    "resolve",
]
