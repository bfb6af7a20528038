"""A parsed Avro schema, in canonical and normalized form.

The checks are those of Java's Avro 1.12 in Confluent's registry. `reader` lists the stricter checks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.registry import limits
from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.avro.reader import Reader
from headgate.registry.formats.avro.types import AvroType, Enum, Fixed, Named, Record
from headgate.registry.formats.avro.writer import write
from headgate.registry.formats.json_text import load
from headgate.registry.model import SchemaType


@dataclass(frozen=True, slots=True, eq=False)
class AvroSchema:
    """A parsed Avro schema."""

    text: str
    root: AvroType
    canonical: str
    referenced: tuple[Named, ...] = ()
    """The types that its references define. The canonical text contains their names only."""
    type: SchemaType = field(default=SchemaType.AVRO)

    def normalized(self) -> str:
        return write(self.root, self.referenced, normalize=True)

    def formatted(self, name: str) -> str:
        """The text in another format: `resolved` inlines references. An unknown format returns the canonical text."""
        return write(self.root) if name == "resolved" else self.canonical

    @property
    def resolved(self) -> str:
        return write(self.root) if self.referenced else self.canonical

    @property
    def top_level_fields(self) -> frozenset[str]:
        return frozenset(f.name for f in self.root.fields) if isinstance(self.root, Record) else frozenset()


def parse(text: str, references: Mapping[str, str], *, strict: bool = True) -> AvroSchema:
    """Parse a schema.

    `strict=False` accepts a stored schema, of this or another registry, with its names and defaults.
    """
    try:
        return _parsed(text, references, Reader(strict=strict))
    except RecursionError:
        raise InvalidSchema("types, defaults or properties are nested too deeply") from None


def _parsed(text: str, references: Mapping[str, str], reader: Reader) -> AvroSchema:
    referenced = []
    for name, referenced_text in references.items():
        try:
            root = reader.read(_document(referenced_text))
        except InvalidSchema as error:
            raise InvalidSchema(f"reference {name}: {error.reason}", error.path) from None
        if isinstance(root, Record | Enum | Fixed):
            referenced.append(root)
    root = reader.read(_document(text))
    try:
        canonical = write(root, referenced)
        canonical.encode()
    except UnicodeEncodeError as error:
        raise InvalidSchema(f"the text contains an unpaired surrogate: {error.reason}") from None
    except ValueError:
        raise InvalidSchema("a default or a property is nested too deeply") from None
    return AvroSchema(text, root, canonical, tuple(referenced))


def _document(text: str) -> object:
    if len(text) > limits.SCHEMA_CHARS_MAX:
        raise InvalidSchema(f"the schema has {len(text)} characters; at most {limits.SCHEMA_CHARS_MAX} are accepted")
    try:
        return load(text)
    except ValueError as error:
        raise InvalidSchema(f"not JSON: {error}") from None
