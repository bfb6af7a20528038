"""Avro's JSON encoding.

Follows the Avro 1.12 specification, "JSON Encoding":

- A non-null union value is an object with one key, the branch.
- Bytes and fixed are strings of code points 0 to 255.
- Logical types have the form of their underlying type, so decimals and timestamps are exact.
- NaN and the infinities are the strings that Java writes.
"""

from headgate.serdes.avro.json_decoder import FromJson
from headgate.serdes.avro.json_encoder import ToJson
from headgate.serdes.avro.native_json import NativeFromJson, NativeToJson
from headgate.serdes.avro.schema import Schema
from headgate.serdes.errors import EncodeError
from headgate.serdes.json_text import dumps, loads


class JsonEncoding:
    """Converts values of one schema to and from JSON documents. Immutable, so that threads can share it.

    `tag_unions` returns union values as `(branch name, value)`, which the binary encoder accepts. `native_logical` uses
    the readable form of logical types (`serdes.avro.native_json`).
    """

    __slots__ = ("_from_json", "_to_json")

    def __init__(self, schema: Schema, *, tag_unions: bool = False, native_logical: bool = False) -> None:
        self._from_json = (NativeFromJson if native_logical else FromJson)(tag_unions).compile(schema)
        self._to_json = (NativeToJson if native_logical else ToJson)().compile(schema)

    def from_json(self, document: object) -> object:
        """Convert a parsed document to a value. Raises `EncodeError` and no other error."""
        try:
            return self._from_json(document, 0)
        except RecursionError:
            raise EncodeError("nested deeper than the caller's stack allows") from None

    def to_json(self, value: object) -> object:
        """Convert a value to a document for `json.dumps`. Union values may be tagged. Raises `EncodeError`."""
        try:
            return self._to_json(value, 0)
        except RecursionError:
            raise EncodeError("nested deeper than the caller's stack allows") from None

    def from_text(self, text: bytes | str) -> object:
        """Convert a text to a value. Raises `EncodeError` and no other error."""
        return self.from_json(loads(text))

    def to_text(self, value: object) -> str:
        return dumps(self.to_json(value))
