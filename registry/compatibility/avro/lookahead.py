"""Rejects union branches early, without creating a pair for each combination.

Two unions of a thousand records with the same unqualified name have a million combinations. Most fail for a few
reasons, so each combination is tested against known failures first. Types are identified by *shape*: types of equal
shape have equal results in all comparisons.
"""

from typing import Final

from headgate.registry.compatibility.avro.matching import (
    fields_by_name,
    matching_fields,
    names_match,
    plainly_unreadable,
    promotes,
)
from headgate.registry.formats.avro.types import (
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Union,
)

DEPTH_MAX: Final = 50
"""Nested types that one test visits. Each level needs up to five of Python's 1,000 stack frames."""
VISITS_MAX: Final = 64
"""Complex types that one test visits. Fields that failed before are tested first, so most tests need fewer than ten."""

_IN_PROGRESS: Final = -1


class Shapes:
    """Assigns numbers to types. Equal numbers mean equal structure. Recursive types have unique numbers."""

    def __init__(self, reader: AvroType) -> None:
        self._numbers: dict[object, int] = {}
        self.by_type: dict[int, int] = {}
        self._aliases = _aliases(reader)

    def of(self, root: AvroType) -> int:
        """Uses a work list instead of recursion, because chains of named types can exceed the stack."""
        known = self.by_type.get(id(root))
        if known is not None and known != _IN_PROGRESS:
            return known
        stack: list[tuple[AvroType, bool]] = [(root, False)]
        while stack:
            current, is_expanded = stack.pop()
            if is_expanded:
                self.by_type[id(current)] = self._number(self._key(current))
            elif id(current) not in self.by_type:
                self.by_type[id(current)] = _IN_PROGRESS
                stack.append((current, True))
                stack.extend((part, False) for part in _parts(current) if id(part) not in self.by_type)
        return self.by_type[id(root)]

    def _number(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _key(self, current: AvroType) -> object:
        parts = tuple(self.by_type[id(part)] for part in _parts(current))
        if _IN_PROGRESS in parts:
            return id(current)
        match current:
            case Record():
                fields = tuple((field.name, field.aliases, field.has_default) for field in current.fields)
                return (*self._names(current), fields, parts)
            case Enum():
                return (*self._names(current), current.symbols, current.default is not None)
            case Fixed():
                return (*self._names(current), current.size)
            case _:
                return current.kind, parts

    def _names(self, named: Named) -> tuple[object, ...]:
        """A match ignores namespaces, unless an alias of the reader contains the full name."""
        full = named.name.full
        aliases = tuple(alias.full for alias in named.aliases)
        return named.kind, full if full in self._aliases else (named.name.simple,), aliases


class Lookahead:
    """Tests whether a combination certainly fails. False means that a full comparison is necessary."""

    def __init__(self, reader: AvroType, writer: AvroType) -> None:
        shapes = Shapes(reader)
        shapes.of(reader)
        shapes.of(writer)
        self._shapes = shapes.by_type
        self._failed: set[tuple[int, int]] = set()
        """Shapes of readers and writers that are known to be incompatible."""
        self._required: dict[int, frozenset[str]] = {}
        self._written: dict[int, dict[str, Field]] = {}
        self._suspects: dict[int, Field] = {}
        """By reader: the field that failed last. It is tested first, because it often fails again."""
        self._visits_left = 0

    def note_failure(self, reader: AvroType, writer: AvroType) -> None:
        self._failed.add((self._shapes[id(reader)], self._shapes[id(writer)]))

    def has_failed(self, reader: AvroType, writer: AvroType) -> bool:
        return (self._shapes[id(reader)], self._shapes[id(writer)]) in self._failed

    def suspect(self, reader: Record, part: AvroType) -> None:
        """Record that a field of this type made the reader incompatible."""
        if id(reader) not in self._suspects:
            field = next((field for field in reader.fields if field.type is part), None)
            if field is not None:
                self._suspects[id(reader)] = field

    def rejects(self, reader: AvroType, writer: AvroType) -> tuple[bool, int]:
        """The result, and the number of visited types."""
        shapes, failed = self._shapes, self._failed
        if (shapes[id(reader)], shapes[id(writer)]) in failed:
            return True, 1
        suspect = self._suspects.get(id(reader))
        if suspect is not None and isinstance(writer, Record):
            other = self._fields(writer).get(suspect.name)
            if other is not None and (shapes[id(suspect.type)], shapes[id(other.type)]) in failed:
                return True, 1
        self._visits_left = VISITS_MAX
        return self._fails(reader, writer, DEPTH_MAX), 1 + VISITS_MAX - max(self._visits_left, 0)

    def _fails(self, reader: AvroType, writer: AvroType, depth: int) -> bool:
        if isinstance(reader, Primitive) and isinstance(writer, Primitive):
            if promotes(reader.kind, writer.kind):
                return False
            self.note_failure(reader, writer)
            return True
        if (self._shapes[id(reader)], self._shapes[id(writer)]) in self._failed:
            return True
        self._visits_left -= 1
        if depth == 0 or self._visits_left < 0:
            return False
        if isinstance(reader, Union) or isinstance(writer, Union):
            readers = reader.branches if isinstance(reader, Union) else [reader]
            writers = writer.branches if isinstance(writer, Union) else [writer]
            return any(all(self._fails(one, other, depth - 1) for one in readers) for other in writers)
        if isinstance(reader, Record) and isinstance(writer, Record):
            return self._record_fails(reader, writer, depth)
        if isinstance(reader, Array) and isinstance(writer, Array):
            return self._fails(reader.items, writer.items, depth - 1)
        if isinstance(reader, Map) and isinstance(writer, Map):
            return self._fails(reader.values, writer.values, depth - 1)
        return plainly_unreadable(reader, writer)

    def _record_fails(self, reader: Record, writer: Record, depth: int) -> bool:
        if not names_match(reader, writer):
            return True
        written = self._fields(writer)
        required = self._required.get(id(reader))
        if required is None:
            required = self._required[id(reader)] = frozenset(
                field.name for field in reader.fields if not field.has_default and not field.aliases
            )
        if not required <= written.keys():
            return True
        suspect = self._suspects.get(id(reader))
        if suspect is not None and self._field_fails(suspect, written, depth):
            return True
        for field in reader.fields:
            if self._field_fails(field, written, depth):
                self._suspects[id(reader)] = field
                return True
        return False

    def _field_fails(self, field: Field, written: dict[str, Field], depth: int) -> bool:
        matches = matching_fields(field, written)
        if len(matches) == 1:
            return self._fails(field.type, matches[0].type, depth - 1)
        return bool(matches) or not field.has_default

    def _fields(self, writer: Record) -> dict[str, Field]:
        written = self._written.get(id(writer))
        if written is None:
            written = self._written[id(writer)] = fields_by_name(writer)
        return written


def _parts(current: AvroType) -> list[AvroType]:
    match current:
        case Record():
            return [field.type for field in current.fields]
        case Union():
            return current.branches
        case Array():
            return [current.items]
        case Map():
            return [current.values]
        case _:
            return []


def _aliases(root: AvroType) -> frozenset[str]:
    """The aliases of all named types in a schema, with namespaces."""
    found: set[str] = set()
    seen: set[int] = set()
    stack = [root]
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, Record | Enum | Fixed):
            found.update(alias.full for alias in current.aliases)
        stack.extend(_parts(current))
    return frozenset(found)
