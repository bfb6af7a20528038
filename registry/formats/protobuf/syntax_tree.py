"""The content of a .proto file as frozen dataclasses, in source order.

Names are not resolved. `parser` and `from_descriptor` build trees, `printer` prints them, and `descriptors` converts
them to a FileDescriptorProto.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TAG_MAX: Final = (1 << 29) - 1
"""The highest field number: a key on the wire has 32 bits, and the wire type takes three of them."""

SCALARS: Final = frozenset(
    {
        *("double", "float", "bool", "string", "bytes"),
        *(sign + size for sign in ("int", "uint", "sint", "fixed", "sfixed") for size in ("32", "64")),
    }
)


@dataclass(frozen=True, slots=True)
class Word:
    """An identifier as a value: true, inf, or the name of an enum constant."""

    text: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written, with its sign: 0x10 and 16 have the same value but different texts."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A string literal with resolved escapes. It may contain any bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A message literal `{ key: value }`. The key of an extension includes its brackets."""

    entries: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list literal `[a, b]` inside an aggregate."""

    items: tuple[Value, ...]


Value = Word | Number | Text | Aggregate | Sequence


@dataclass(frozen=True, slots=True)
class NamePart:
    """One part of an option name. `(my.option)` is an extension, `deprecated` is not."""

    text: str
    extension: bool


@dataclass(frozen=True, slots=True)
class Option:
    name: tuple[NamePart, ...]
    value: Value
    line: int = 0

    @property
    def spelled(self) -> str:
        return ".".join(f"({part.text})" if part.extension else part.text for part in self.name)


@dataclass(frozen=True, slots=True)
class Field:
    """A field, a map field (`key_type` is set, `type` is the value type) or a group (`group` is set)."""

    label: str | None
    type: str
    name: str
    number: int
    options: tuple[Option, ...] = ()
    key_type: str | None = None
    group: Message | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class OneOf:
    name: str
    fields: tuple[Field, ...]
    options: tuple[Option, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Range:
    """A range of numbers, including both ends. `single` means that it is written as one number."""

    start: int
    end: int
    single: bool


@dataclass(frozen=True, slots=True)
class Reserved:
    """One `reserved` statement: ranges or names, in source order."""

    values: tuple[Range | str, ...]
    quoted: bool = True
    """Names are quoted, except in editions."""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Extensions:
    ranges: tuple[Range, ...]
    options: tuple[Option, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Extend:
    extendee: str
    fields: tuple[Field, ...]
    line: int = 0


@dataclass(frozen=True, slots=True)
class EnumConstant:
    name: str
    number: int
    options: tuple[Option, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Enum:
    name: str
    constants: tuple[EnumConstant, ...] = ()
    options: tuple[Option, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    visibility: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """`body` contains fields, oneofs, nested types and extensions in source order."""

    name: str
    body: tuple[Field | OneOf | Message | Enum | Extend, ...] = ()
    options: tuple[Option, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    extensions: tuple[Extensions, ...] = ()
    visibility: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Method:
    name: str
    input_type: str
    output_type: str
    input_streaming: bool = False
    output_streaming: bool = False
    options: tuple[Option, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    methods: tuple[Method, ...] = ()
    options: tuple[Option, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Import:
    path: str
    modifier: str = ""
    """"", "public", "weak" or "option"."""
    line: int = 0


@dataclass(frozen=True, slots=True)
class File:
    syntax: str | None
    """"proto2", "proto3", or None for an edition or no syntax line (then it is proto2)."""
    edition: str | None = None
    package: str = ""
    imports: tuple[Import, ...] = ()
    options: tuple[Option, ...] = ()
    body: tuple[Message | Enum | Extend | Service, ...] = ()
