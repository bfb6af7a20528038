"""The text of a JSON Schema understood: checked against its draft, references followed.

Drafts 04, 06, 07, 2019-09 and 2020-12, by `$schema`; draft-07 when it does not say, as in Confluent's registry.
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
    """`registry.formats.base.ParsedSchema` for JSON Schema."""

    text: str
    canonical: str
    draft: Draft
    root: Subschema = field(repr=False, compare=False)
    value: Any = field(repr=False, compare=False)
    references: Mapping[str, Any] = field(repr=False)
    """The documents it refers to, read, by the name used for them."""

    @property
    def type(self) -> SchemaType:
        return SchemaType.JSON

    def normalized(self) -> str:
        return compact(self.value, sort=True)

    def says_the_same_as(self, other: "JsonSchema") -> bool:
        """Letter by letter, spaces aside, with everything referred to."""
        return self.canonical == other.canonical and _texts(self.references) == _texts(other.references)

    def validator(self) -> Validator:
        """Made anew at each call: keep it."""
        return Validator(self.root, self.references)


def parse(text: str, references: Mapping[str, str], *, strict: bool = True) -> JsonSchema:
    """`registry.formats.base.Parser` for JSON Schema.

    `strict=False` takes a schema that was accepted once, by this registry or another, with arrays that are empty.
    """
    value, canonical = _document(text, "")
    documents = {name: _document(referenced, name)[0] for name, referenced in references.items()}
    draft = declared(value) or DEFAULT
    root = assemble(value, documents, draft, strict=strict)
    return JsonSchema(text, canonical, draft, root, value, documents)


def _texts(documents: Mapping[str, Any]) -> dict[str, str]:
    return {name: compact(document) for name, document in documents.items()}


def _document(text: str, name: str) -> tuple[Any, str]:
    """The value of a text, and its compact form."""
    place = f"{name}#" if name else ""
    try:
        value = read(text)
        canonical = compact(value)
        canonical.encode()
    except InvalidSchema as error:
        raise InvalidSchema(error.reason, place or error.path) from None
    except UnicodeEncodeError:
        raise InvalidSchema("holds half of a surrogate pair, which is no character", place) from None
    return value, canonical
