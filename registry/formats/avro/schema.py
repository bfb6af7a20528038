"""Avro schemas: parsed, checked, in canonical and normalized form.

The checks are those of Java's Avro 1.12 as Confluent's registry runs it; `avro_reader` lists where ours are stricter.
Reading data with the schema is `serdes`, comparing two schemas is `registry.compatibility.avro`.
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
    """One Avro schema, understood."""

    text: str
    root: AvroType
    canonical: str
    referenced: tuple[Named, ...] = ()
    """The types that its references define: written by name in its canonical form."""
    type: SchemaType = field(default=SchemaType.AVRO)

    def normalized(self) -> str:
        return write(self.root, self.referenced, normalize=True)

    def formatted(self, name: str) -> str:
        """Another form of the text: `resolved` writes references out. An unknown form is the canonical one."""
        return write(self.root) if name == "resolved" else self.canonical

    @property
    def resolved(self) -> str:
        return write(self.root) if self.referenced else self.canonical

    @property
    def top_level_fields(self) -> frozenset[str]:
        return frozenset(f.name for f in self.root.fields) if isinstance(self.root, Record) else frozenset()


def parse(text: str, references: Mapping[str, str], *, strict: bool = True) -> AvroSchema:
    """Understand `text`; see `registry.formats.base.Parser`.

    `strict=False` takes a schema that was accepted once, by this registry or another, with its names and defaults.
    """
    try:
        return _parsed(text, references, Reader(strict=strict))
    except RecursionError:
        raise InvalidSchema("types, defaults or properties are nested too deep") from None


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
        raise InvalidSchema(f"a lone surrogate (half of a character) stands in the text: {error.reason}") from None
    except ValueError:
        raise InvalidSchema("a default or a property is nested too deep") from None
    return AvroSchema(text, root, canonical, tuple(referenced))


def _document(text: str) -> object:
    if len(text) > limits.SCHEMA_CHARS_MAX:
        raise InvalidSchema(f"the schema has {len(text)} characters; at most {limits.SCHEMA_CHARS_MAX} are accepted")
    try:
        return load(text)
    except ValueError as error:
        raise InvalidSchema(f"not JSON: {error}") from None
