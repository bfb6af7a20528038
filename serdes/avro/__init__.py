"""Row-wise Avro: schemas, resolution, a strict decoder and a strict encoder."""

from headgate.serdes.avro.binary import Fault
from headgate.serdes.avro.decimal_mistakes import DecimalMistakes
from headgate.serdes.avro.decoder import DEPTH_MAX, ZERO_SIZE_ITEMS_MAX, Decoder
from headgate.serdes.avro.encoder import Encoder
from headgate.serdes.avro.json_encoding import JsonEncoding
from headgate.serdes.avro.json_to_binary import JsonToBinary
from headgate.serdes.avro.logical import Duration, Nanoseconds
from headgate.serdes.avro.resolution import resolve
from headgate.serdes.avro.schema import Schema, parse
from headgate.serdes.errors import EncodeError

__all__ = [
    "DEPTH_MAX",
    "ZERO_SIZE_ITEMS_MAX",
    "DecimalMistakes",
    "Decoder",
    "Duration",
    "EncodeError",
    "Encoder",
    "Fault",
    "JsonEncoding",
    "JsonToBinary",
    "Nanoseconds",
    "Schema",
    "parse",
    "resolve",
]
