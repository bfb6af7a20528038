"""May this Avro reader read what that writer wrote? Section "Schema Resolution" of the Avro 1.12 specification.

Kinds, paths and details are those of Java's `SchemaCompatibility`, which Confluent's registry prints; unlike there,
paths lead through unions. Types are compared in pairs. A pair is compatible until shown otherwise, so recursive types
end; a pair found incompatible makes those that contain it so (a work list instead of recursion: mutual recursion of
large schemas is deeper than any stack).
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from registry import limits
from registry.compatibility.incompatibility import Incompatibility
from registry.errors import InvalidSchema
from registry.formats.avro import AvroSchema
from registry.formats.avro_types import (
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
from registry.formats.avro_writer import write

_PROMOTIONS: Final = frozenset(
    {
        ("long", "int"),
        ("float", "int"),
        ("float", "long"),
        ("double", "int"),
        ("double", "long"),
        ("double", "float"),
        ("bytes", "string"),
        ("string", "bytes"),
    }
)
_FRAGMENT_CHARS_MAX: Final = 200


def check(reader: AvroSchema, writer: AvroSchema) -> list[Incompatibility]:
    """Every difference that keeps `reader` from reading what `writer` wrote."""
    if reader.resolved == writer.resolved:
        return []
    comparison = _Comparison()
    comparison.explore(reader.root, writer.root)
    comparison.propagate()
    return comparison.report()


@dataclass(slots=True, eq=False)
class _Finding:
    kind: str
    path: str
    message: str
    detail: str
    advice: str


@dataclass(slots=True, eq=False)
class _Choice:
    """A branch of the writer that some branch of the reader must read."""

    path: str
    options: "list[_Pair]"
    finding: _Finding


@dataclass(slots=True, eq=False)
class _Pair:
    reader: AvroType
    writer: AvroType
    findings: list[_Finding] = field(default_factory=list)
    parts: "list[tuple[str, _Pair]]" = field(default_factory=list)
    choices: list[_Choice] = field(default_factory=list)
    needed_by: "list[_Pair]" = field(default_factory=list)
    compatible: bool = True


class _Comparison:
    def __init__(self) -> None:
        self.pairs: dict[tuple[int, int], _Pair] = {}
        self.queue: deque[_Pair] = deque()

    def pair(self, reader: AvroType, writer: AvroType) -> _Pair:
        key = (id(reader), id(writer))
        known = self.pairs.get(key)
        if known is None:
            if len(self.pairs) >= limits.compatibility_pairs_max:
                raise InvalidSchema("the schemas are too intertwined to be compared")
            known = self.pairs[key] = _Pair(reader, writer)
            self.queue.append(known)
        return known

    def explore(self, reader: AvroType, writer: AvroType) -> None:
        self.root = self.pair(reader, writer)
        while self.queue:
            pair = self.queue.popleft()
            _Rules(self, pair).apply()

    def propagate(self) -> None:
        changed = deque(pair for pair in self.pairs.values() if pair.findings)
        for pair in changed:
            pair.compatible = False
        # A choice without options (a reader's empty union) fails before anything propagates.
        for pair in self.pairs.values():
            if pair.compatible and any(not choice.options for choice in pair.choices):
                pair.compatible = False
                changed.append(pair)
        while changed:
            for container in changed.popleft().needed_by:
                if container.compatible and (
                    any(not part.compatible for _, part in container.parts)
                    or any(not any(option.compatible for option in choice.options) for choice in container.choices)
                ):
                    container.compatible = False
                    changed.append(container)

    def report(self) -> list[Incompatibility]:
        """The findings of incompatible pairs, each pair where it is first met, in the order of the schema."""
        found: list[Incompatibility] = []
        fragments: dict[int, str] = {}
        within: dict[int, _Pair | None] = {}
        stack: list[tuple[str, _Pair, _Pair | None]] = [("", self.root, None)]
        while stack and len(found) < limits.incompatibilities_max:
            path, pair, container = stack.pop()
            if pair.compatible or id(pair) in within:
                continue
            within[id(pair)] = container
            findings = [*pair.findings, *_failed_choices(pair, within)]
            found.extend(_incompatibility(path, pair, finding, fragments) for finding in findings)
            stack.extend((path + step, part, pair) for step, part in reversed(pair.parts) if not part.compatible)
        return found[: limits.incompatibilities_max]


def _failed_choices(pair: _Pair, within: dict[int, _Pair | None]) -> list[_Finding]:
    """Unread branches, but for those that lead back to a pair around this one: its own findings explain them."""
    failed = [choice for choice in pair.choices if not any(option.compatible for option in choice.options)]
    if not failed:
        return []
    around: set[int] = set()
    place: _Pair | None = pair
    while place is not None:
        around.add(id(place))
        place = within[id(place)]
    return [choice.finding for choice in failed if not any(id(option) in around for option in choice.options)]


class _Rules:
    """What one pair asks of its parts."""

    def __init__(self, comparison: _Comparison, pair: _Pair) -> None:
        self.comparison = comparison
        self.this = pair

    def apply(self) -> None:
        reader, writer = self.this.reader, self.this.writer
        if isinstance(writer, Union):
            self.writer_union(reader, writer)
        elif isinstance(reader, Union):
            options = [self.option(branch, writer) for branch in reader.branches]
            self.this.choices.append(_Choice("", options, _missing_branch("", writer)))
        elif isinstance(reader, Primitive):
            if reader.kind != writer.kind and (reader.kind, writer.kind) not in _PROMOTIONS:
                self.mismatch(reader, writer)
        elif isinstance(reader, Array) and isinstance(writer, Array):
            self.part("/items", reader.items, writer.items)
        elif isinstance(reader, Map) and isinstance(writer, Map):
            self.part("/values", reader.values, writer.values)
        elif isinstance(reader, Record) and isinstance(writer, Record):
            self.names(reader, writer)
            self.fields(reader, writer)
        elif isinstance(reader, Enum) and isinstance(writer, Enum):
            self.names(reader, writer)
            self.symbols(reader, writer)
        elif isinstance(reader, Fixed) and isinstance(writer, Fixed):
            self.names(reader, writer)
            self.size(reader, writer)
        else:
            self.mismatch(reader, writer)

    def part(self, step: str, reader: AvroType, writer: AvroType) -> None:
        pair = self.comparison.pair(reader, writer)
        self.this.parts.append((step, pair))
        pair.needed_by.append(self.this)

    def option(self, reader: AvroType, writer: AvroType) -> _Pair:
        pair = self.comparison.pair(reader, writer)
        pair.needed_by.append(self.this)
        return pair

    def find(self, kind: str, path: str, message: str, detail: str, advice: str) -> None:
        self.this.findings.append(_Finding(kind, path, message, detail, advice))

    def writer_union(self, reader: AvroType, writer: Union) -> None:
        for index, branch in enumerate(writer.branches):
            if isinstance(reader, Union):
                options = [self.option(reader_branch, branch) for reader_branch in reader.branches]
                self.this.choices.append(_Choice(f"/{index}", options, _missing_branch(f"/{index}", branch)))
            else:
                self.part(f"/{index}", reader, branch)

    def mismatch(self, reader: AvroType, writer: AvroType) -> None:
        self.find(
            "TYPE_MISMATCH",
            "",
            f"a reader of {_label(reader)} cannot read {_label(writer)}",
            f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}",
            f"keep the type {_label(writer)}, widen it along int, long, float, double, or make the reader a union "
            "that holds it",
        )

    def names(self, reader: Named, writer: Named) -> None:
        if reader.name.simple == writer.name.simple:
            return
        if any(alias.full == writer.name.full for alias in reader.aliases):
            return
        self.find(
            "NAME_MISMATCH",
            "/name",
            f"the reader's {reader.kind} is named {reader.name.full}, the writer's {writer.name.full}",
            f"expected: {writer.name.full}",
            f'add "{writer.name.full}" to the aliases of {reader.name.full}, or keep the name',
        )

    def size(self, reader: Fixed, writer: Fixed) -> None:
        if reader.size != writer.size:
            self.find(
                "FIXED_SIZE_MISMATCH",
                "/size",
                f"the reader's {reader.name.full} has {reader.size} bytes, the writer's {writer.size}",
                f"expected: {writer.size}, found: {reader.size}",
                f"keep the size {writer.size}, or add a new field with another fixed type",
            )

    def symbols(self, reader: Enum, writer: Enum) -> None:
        missing = sorted(set(writer.symbols) - set(reader.symbols))
        if missing and reader.default is None:
            listed = f"[{', '.join(missing)}]"
            self.find(
                "MISSING_ENUM_SYMBOLS",
                "/symbols",
                f"the reader's {reader.name.full} lacks the symbols {listed} that the writer may write",
                listed,
                f"keep the symbols {', '.join(missing)}, or give {reader.name.full} a default symbol",
            )

    def fields(self, reader: Record, writer: Record) -> None:
        written = {writer_field.name: writer_field for writer_field in writer.fields}
        for index, reader_field in enumerate(reader.fields):
            matches = _matching(reader_field, written)
            step = f"/fields/{index}"
            if len(matches) == 1:
                self.part(f"{step}/type", reader_field.type, matches[0].type)
            elif matches:
                names = ", ".join(match.name for match in matches)
                self.find(
                    "READER_FIELD_AMBIGUOUS",
                    step,
                    f"the reader's field {reader_field.name} matches several fields of the writer: {names}",
                    reader_field.name,
                    f"remove aliases of {reader_field.name} until it matches one of {names}",
                )
            elif not reader_field.has_default:
                self.find(
                    "READER_FIELD_MISSING_DEFAULT_VALUE",
                    step,
                    f"the reader's field {reader_field.name} has no default and the writer does not write it",
                    reader_field.name,
                    f"give the field {reader_field.name} a default",
                )


def _matching(reader_field: Field, written: dict[str, Field]) -> list[Field]:
    direct = written.get(reader_field.name)
    matches = [] if direct is None else [direct]
    aliases = (alias for alias in reader_field.aliases if alias != reader_field.name)
    matches.extend(written[alias] for alias in aliases if alias in written)
    return matches


def _missing_branch(path: str, writer: AvroType) -> _Finding:
    return _Finding(
        "MISSING_UNION_BRANCH",
        path,
        f"no branch of the reader's union reads {_label(writer)}",
        f"reader union lacking writer type: {writer.kind.upper()}",
        f"add {_label(writer)} to the union",
    )


def _incompatibility(path: str, pair: _Pair, finding: _Finding, fragments: dict[int, str]) -> Incompatibility:
    for side in (pair.reader, pair.writer):
        if id(side) not in fragments:
            fragments[id(side)] = _fragment(side)
    return Incompatibility(
        kind=finding.kind,
        path=(path + finding.path) or "/",
        message=finding.message,
        reader=fragments[id(pair.reader)],
        writer=fragments[id(pair.writer)],
        advice=finding.advice,
        detail=finding.detail,
    )


def _label(avro_type: AvroType) -> str:
    match avro_type:
        case Record() | Enum() | Fixed():
            return f"{avro_type.kind} {avro_type.name.full}"
        case Union():
            return "a union"
        case _:
            return avro_type.kind


def _fragment(avro_type: AvroType) -> str:
    text = write(avro_type)
    return text if len(text) <= _FRAGMENT_CHARS_MAX else f"{text[:_FRAGMENT_CHARS_MAX]}..."
