"""Finds decimals that are almost certainly a mistake in Avro's JSON encoding.

There, a decimal is a string whose code points are the bytes of the number. `"9.99"` is therefore not 9.99, but the
number with the bytes of this text. Confluent's REST Proxy accepts it too.
"""

import re
from typing import Any, Final

from headgate.serdes.avro.json_compiler import Convert
from headgate.serdes.avro.json_decoder import FromJson
from headgate.serdes.avro.schema import Enum, Fixed, Primitive, Schema
from headgate.serdes.errors import EncodeError

_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)


class DecimalMistakes:
    """Searches documents of one schema. Immutable, so that threads can share it."""

    __slots__ = ("_search",)

    def __init__(self, schema: Schema) -> None:
        compiler = _Search(tag_unions=False)
        search = compiler.compile(schema)
        self._search = search if compiler.has_decimals else None

    @property
    def is_possible(self) -> bool:
        """False if the schema has no decimals."""
        return self._search is not None

    def find(self, document: object) -> str | None:
        """A warning for the first decimal whose text looks like a number, or None."""
        if self._search is None:
            return None
        try:
            self._search(document, 0)
        except _Mistake as mistake:
            return str(mistake)
        except (EncodeError, RecursionError):
            pass  # The encoder reports what is wrong with the document.
        return None


class _Mistake(EncodeError):
    pass


class _Search(FromJson):
    has_decimals = False

    def _scalar(self, schema: Primitive | Fixed | Enum) -> Convert:
        if isinstance(schema, Enum) or schema.logical is None or schema.logical.name != "decimal":
            return _nothing
        self.has_decimals = True
        return _decimal


def _nothing(document: Any, depth: int) -> None:
    return None


def _decimal(document: Any, depth: int) -> None:
    if isinstance(document, str) and _NUMBER.fullmatch(document):
        raise _Mistake(
            f"{document!r:.40} is stored as the bytes of this text, not as the number. "
            "Add logical=native to the request to send decimals as numbers or text"
        )
