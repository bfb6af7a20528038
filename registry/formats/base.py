"""The interface of a parsed schema, for all languages.

Each language has a function `parse(text, references, strict)`. `references` maps the name of each direct and indirect
reference to its text, dependencies first. `parse` raises `registry.errors.InvalidSchema` and no other error.
"""

from typing import Protocol

from headgate.registry.model import SchemaType


class ParsedSchema(Protocol):
    """A parsed schema. Immutable, so that threads and caches can share it."""

    @property
    def type(self) -> SchemaType: ...

    @property
    def text(self) -> str:
        """The submitted text."""
        ...

    @property
    def canonical(self) -> str:
        """The text that is stored and compared (Confluent's canonicalString): no formatting, original order."""
        ...

    def normalized(self) -> str:
        """The text with everything sorted that has no order, for `normalize=true`."""
        ...
