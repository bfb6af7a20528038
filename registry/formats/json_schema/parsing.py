"""Parses JSON Schema: checks the schema against its draft and resolves references.

Supports drafts 04, 06, 07, 2019-09 and 2020-12 by `$schema`. The default is draft-07, as in Confluent's registry.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.json_schema.document import compact, read
from headgate.registry.formats.json_schema.drafts import DEFAULT, Draft, declared
from headgate.registry.formats.json_schema.library import assemble
from headgate.registry.formats.json_schema.subschema import Subschema
from headgate.registry.formats.json_schema.validation import Validator
from headgate.registry.model import SchemaType


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """A parsed JSON Schema (`registry.formats.base.ParsedSchema`)."""

    text: str
    canonical: str
    draft: Draft
    root: Subschema = field(repr=False, compare=False)
    value: Any = field(repr=False, compare=False)
    references: Mapping[str, Any] = field(repr=False)
    """The parsed documents of its references, by name."""

    @property
    def type(self) -> SchemaType:
        return SchemaType.JSON

    def normalized(self) -> str:
        return compact(self.value, sort=True)

    def says_the_same_as(self, other: "JsonSchema") -> bool:
        """The compact texts of the schema and its references, which determine equality."""
        return self.canonical == other.canonical and _texts(self.references) == _texts(other.references)

    def validator(self) -> Validator:
        """A new validator. Callers cache it."""
        return Validator(self.root, self.references)


def parse(text: str, references: Mapping[str, str], *, strict: bool = True) -> JsonSchema:
    """Parse a JSON Schema.

    `strict=False` accepts a stored schema, of this or another registry, with empty arrays.
    """
    value, canonical = _document(text, "")
    documents = {name: _document(referenced, name)[0] for name, referenced in references.items()}
    draft = declared(value) or DEFAULT
    root = assemble(value, documents, draft, strict=strict)
    return JsonSchema(text, canonical, draft, root, value, documents)


def _texts(documents: Mapping[str, Any]) -> dict[str, str]:
    return {name: compact(document) for name, document in documents.items()}


def _document(text: str, name: str) -> tuple[Any, str]:
    """The value of a text, and its compact text."""
    place = f"{name}#" if name else ""
    try:
        value = read(text)
        canonical = compact(value)
        canonical.encode()
    except InvalidSchema as error:
        raise InvalidSchema(error.reason, place or error.path) from None
    except UnicodeEncodeError:
        raise InvalidSchema("contains an unpaired surrogate", place) from None
    return value, canonical
