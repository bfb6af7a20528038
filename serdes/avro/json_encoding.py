"""Avro's JSON encoding, in and out.

Follows the Avro 1.12 specification, "JSON Encoding": a union's value, unless null, is an object of one key, the branch;
bytes and fixed are strings of code points 0 to 255; logical types appear as their underlying type, so decimals and
timestamps are exact. NaN and the infinities, which JSON lacks, are the strings that Java writes.
"""

from headgate.serdes.avro.json_reading import FromJson
from headgate.serdes.avro.json_writing import ToJson
from headgate.serdes.avro.schema import Schema
from headgate.serdes.errors import EncodeError
from headgate.serdes.json_text import dumps, loads


class JsonEncoding:
    """Values of one schema as JSON documents and back. Immutable; safe to share between threads.

    `tag_unions` keeps the branch that a document names, as `(branch name, value)`: what the binary encoder takes.
    """

    __slots__ = ("_from_json", "_to_json")

    def __init__(self, schema: Schema, *, tag_unions: bool = False) -> None:
        self._from_json = FromJson(tag_unions).compile(schema)
        self._to_json = ToJson().compile(schema)

    def from_json(self, document: object) -> object:
        """A value from a parsed document. Raises `EncodeError`, and nothing else."""
        try:
            return self._from_json(document, 0)
        except RecursionError:
            raise EncodeError("nested deeper than the caller's stack allows") from None

    def to_json(self, value: object) -> object:
        """A document of what `json.dumps` takes. Raises `EncodeError`. A union's value may be tagged."""
        try:
            return self._to_json(value, 0)
        except RecursionError:
            raise EncodeError("nested deeper than the caller's stack allows") from None

    def from_text(self, text: bytes | str) -> object:
        """Raises `EncodeError`, and nothing else, for any text."""
        return self.from_json(loads(text))

    def to_text(self, value: object) -> str:
        return dumps(self.to_json(value))
