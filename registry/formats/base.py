"""What every schema language offers to the rest: the seam between the service and the three parsers."""

from collections.abc import Mapping
from typing import Protocol

from headgate.registry.model import SchemaType


class ParsedSchema(Protocol):
    """A schema that was understood. Immutable; safe to share between threads and to cache."""

    @property
    def type(self) -> SchemaType: ...

    @property
    def text(self) -> str:
        """As it was given."""
        ...

    @property
    def canonical(self) -> str:
        """The form that is stored and compared (Confluent's canonicalString): formatting removed, order kept."""
        ...

    def normalized(self) -> str:
        """The form with everything that has no order sorted, for `normalize=true`."""
        ...


class Parser(Protocol):
    """One per language: `parse` in `registry.formats.avro`, `.json_schema` and `.protobuf`."""

    def __call__(self, text: str, references: Mapping[str, str]) -> ParsedSchema:
        """Understand `text`.

        `references` holds the text of each referenced schema by the name used for it, transitively, dependencies first.
        Raises `registry.errors.InvalidSchema`, and nothing else, for any text whatever.
        """
        ...
