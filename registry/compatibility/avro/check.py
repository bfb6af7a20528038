"""Checks whether an Avro reader schema can read data of a writer schema (Avro 1.12, "Schema Resolution").

Kinds, paths and details are those of Java's `SchemaCompatibility`, except that paths include union branches.

Types are compared in pairs. A pair counts as compatible until the opposite is shown, so that recursive types terminate.
If a pair is incompatible, the pairs that contain it follow. This uses a work list instead of recursion, because mutual
recursion can exceed the stack.

A union branch of the writer depends on one matching branch of the reader at a time, and moves to the next one if it
fails. Each matching branch is visited once, in any order of failures. A branch that certainly fails (`lookahead`) does
not become a pair.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from headgate.registry import limits
from headgate.registry.compatibility.avro import findings
from headgate.registry.compatibility.avro.findings import Finding
from headgate.registry.compatibility.avro.lookahead import Lookahead
from headgate.registry.compatibility.avro.matching import (
    Branches,
    fields_by_name,
    matching_fields,
    missing_symbols,
    names_match,
    plainly_unreadable,
    promotes,
)
from headgate.registry.compatibility.incompatibility import Incompatibility
from headgate.registry.errors import InvalidSchema, WorkLimitExceeded
from headgate.registry.formats.avro import AvroSchema
from headgate.registry.formats.avro.types import Array, AvroType, Enum, Fixed, Map, Primitive, Record, Union
from headgate.registry.formats.avro.writer import beginning

T = TypeVar("T")

_FRAGMENT_CHARS_MAX: Final = 200
_PATH_CHARS_MAX: Final = 2_000
"""Limits paths through chains of thousands of records."""


def check(reader: AvroSchema, writer: AvroSchema, steps_max: int | None = None) -> list[Incompatibility]:
    """All differences that prevent `reader` from reading data of `writer`.

    Raises `WorkLimitExceeded` after more than `steps_max` steps.
    """
    if reader.resolved == writer.resolved:
        return []
    comparison = _Comparison(reader.root, writer.root, steps_max)
    return comparison.report(comparison.run())


@dataclass(slots=True, eq=False)
class _Choice:
    """A writer branch that some branch of the reader union must read."""

    index: int
    path: str
    reader: Union
    writer: AvroType
    candidates: Iterator[AvroType]
    is_tried: bool = False
    watched: "_Pair | None" = None
    """The reader branch that reads the writer branch, as far as known."""

    def leads_back_to(self, readers_around: dict[int, set[int]]) -> bool:
        readers = readers_around.get(id(self.writer))
        return readers is not None and any(id(branch) in readers for branch in self.reader.branches)


@dataclass(slots=True, eq=False)
class _Pair:
    reader: AvroType
    writer: AvroType
    needed_by: "list[tuple[_Pair, _Choice | None]]" = field(default_factory=list)
    compatible: bool = True
    # None if empty, because there can be 200,000 pairs.
    findings: list[Finding] | None = None
    parts: "list[tuple[str, _Pair]] | None" = None
    failed: list[_Choice] | None = None


class _Comparison:
    def __init__(self, reader: AvroType, writer: AvroType, steps_max: int | None) -> None:
        self.roots = (reader, writer)
        self.steps_max = steps_max
        self.lookahead: Lookahead | None = None
        """Created when a writer branch has a second matching branch, which is rare."""
        self.pairs: dict[tuple[int, int], _Pair] = {}
        self.unexplored: deque[_Pair] = deque()
        self.fallen: deque[_Pair] = deque()
        """Incompatible pairs whose containers are not processed yet."""
        self.branches: dict[int, Branches] = {}
        self.steps = 0

    def run(self) -> _Pair:
        root = self.pair(*self.roots)
        while self.unexplored or self.fallen:
            if self.unexplored:
                self.explore(self.unexplored.popleft())
            else:
                self.propagate(self.fallen.popleft())
        return root

    def spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps_max is not None and self.steps > self.steps_max:
            raise WorkLimitExceeded("The comparison exceeds the step limit")
        if self.steps > limits.COMPATIBILITY_STEPS_MAX:
            raise InvalidSchema("the schemas are too complex to compare")

    def pair(self, reader: AvroType, writer: AvroType) -> _Pair:
        key = (id(reader), id(writer))
        known = self.pairs.get(key)
        if known is None:
            if len(self.pairs) >= limits.COMPATIBILITY_PAIRS_MAX:
                raise InvalidSchema("the schemas are too complex to compare")
            known = self.pairs[key] = _Pair(reader, writer)
            self.unexplored.append(known)
        return known

    def fail(self, pair: _Pair) -> None:
        if pair.compatible:
            pair.compatible = False
            if self.lookahead is not None:
                self.lookahead.note_failure(pair.reader, pair.writer)
            self.fallen.append(pair)

    def propagate(self, pair: _Pair) -> None:
        for container, choice in pair.needed_by:
            if self.lookahead is not None and choice is None and isinstance(container.reader, Record):
                self.lookahead.suspect(container.reader, pair.reader)
            if choice is None or (choice.watched is pair and not self.advance(container, choice)):
                self.fail(container)

    def advance(self, container: _Pair, choice: _Choice) -> bool:
        """Depend on the next reader branch that may match. False if there is none."""
        if self.lookahead is not None and self.lookahead.has_failed(choice.reader, choice.writer):
            choice.candidates = iter(())
        for candidate in choice.candidates:
            if self.rejects(choice, candidate):
                continue
            pair = self.pair(candidate, choice.writer)
            if pair.compatible:
                choice.watched = pair
                pair.needed_by.append((container, choice))
                return True
        choice.watched = None
        container.failed = _appended(container.failed, choice)
        if self.lookahead is not None:
            self.lookahead.note_failure(choice.reader, choice.writer)
        return False

    def rejects(self, choice: _Choice, candidate: AvroType) -> bool:
        """Whether the branch certainly fails.

        The test of the first one is shallow, because the first one usually matches.
        """
        if not choice.is_tried:
            choice.is_tried = True
            self.spend(1 + len(candidate.fields) if isinstance(candidate, Record) else 1)
            return plainly_unreadable(candidate, choice.writer)
        if self.lookahead is None:
            self.lookahead = Lookahead(*self.roots)
            for pair in self.pairs.values():
                if not pair.compatible:
                    self.lookahead.note_failure(pair.reader, pair.writer)
        is_rejected, steps = self.lookahead.rejects(candidate, choice.writer)
        self.spend(steps)
        return is_rejected

    def explore(self, pair: _Pair) -> None:
        reader, writer = pair.reader, pair.writer
        if isinstance(writer, Union):
            self.spend(len(writer.branches))
            for index, branch in enumerate(writer.branches):
                if isinstance(reader, Union):
                    self.choose(pair, index, f"/{index}", reader, branch)
                else:
                    self.part(pair, f"/{index}", reader, branch)
        elif isinstance(reader, Union):
            self.choose(pair, 0, "", reader, writer)
        elif isinstance(reader, Primitive):
            if not promotes(reader.kind, writer.kind):
                self.find(pair, findings.type_mismatch(reader, writer))
        elif isinstance(reader, Array) and isinstance(writer, Array):
            self.part(pair, "/items", reader.items, writer.items)
        elif isinstance(reader, Map) and isinstance(writer, Map):
            self.part(pair, "/values", reader.values, writer.values)
        elif isinstance(reader, Record) and isinstance(writer, Record):
            self.names(pair, reader, writer)
            self.fields(pair, reader, writer)
        elif isinstance(reader, Enum) and isinstance(writer, Enum):
            self.names(pair, reader, writer)
            missing = missing_symbols(reader, writer)
            if missing:
                self.find(pair, findings.missing_symbols(reader, missing))
        elif isinstance(reader, Fixed) and isinstance(writer, Fixed):
            self.names(pair, reader, writer)
            if reader.size != writer.size:
                self.find(pair, findings.size_mismatch(reader, writer))
        else:
            self.find(pair, findings.type_mismatch(reader, writer))

    def find(self, pair: _Pair, finding: Finding) -> None:
        pair.findings = _appended(pair.findings, finding)
        self.fail(pair)

    def part(self, container: _Pair, step: str, reader: AvroType, writer: AvroType) -> None:
        if isinstance(reader, Primitive) and promotes(reader.kind, writer.kind):
            return
        pair = self.pair(reader, writer)
        container.parts = _appended(container.parts, (step, pair))
        pair.needed_by.append((container, None))
        if not pair.compatible:
            self.fail(container)

    def choose(self, container: _Pair, index: int, path: str, reader: Union, writer: AvroType) -> None:
        branches = self.branches.get(id(reader))
        if branches is None:
            self.spend(len(reader.branches))
            branches = self.branches[id(reader)] = Branches(reader)
        choice = _Choice(index, path, reader, writer, branches.candidates(writer))
        if not self.advance(container, choice):
            self.fail(container)

    def names(self, pair: _Pair, reader: Record | Enum | Fixed, writer: Record | Enum | Fixed) -> None:
        if not names_match(reader, writer):
            self.find(pair, findings.name_mismatch(reader, writer))

    def fields(self, pair: _Pair, reader: Record, writer: Record) -> None:
        self.spend(len(reader.fields) + len(writer.fields))
        written = fields_by_name(writer)
        for index, reader_field in enumerate(reader.fields):
            matches = matching_fields(reader_field, written)
            if len(matches) == 1:
                self.part(pair, f"/fields/{index}/type", reader_field.type, matches[0].type)
            elif matches:
                self.find(pair, findings.ambiguous_field(f"/fields/{index}", reader_field, matches))
            elif not reader_field.has_default:
                self.find(pair, findings.missing_default(f"/fields/{index}", reader_field))

    def report(self, root: _Pair) -> list[Incompatibility]:
        """The findings of incompatible pairs in schema order. Each pair is reported at its first position."""
        found: list[Incompatibility] = []
        fragments: dict[int, str] = {}
        within: dict[int, _Pair | None] = {}
        stack: list[tuple[str, _Pair, _Pair | None]] = [("", root, None)]
        while stack and len(found) < limits.INCOMPATIBILITIES_MAX:
            path, pair, container = stack.pop()
            if pair.compatible or id(pair) in within:
                continue
            within[id(pair)] = container
            wrong = [*(pair.findings or ()), *_missing_branches(pair, within)]
            found.extend(_incompatibility(path, pair, finding, fragments) for finding in wrong)
            stack.extend((path + step, part, pair) for step, part in reversed(pair.parts or ()) if not part.compatible)
        return found[: limits.INCOMPATIBILITIES_MAX]


def _appended(items: list[T] | None, item: T) -> list[T]:
    if items is None:
        return [item]
    items.append(item)
    return items


def _missing_branches(pair: _Pair, within: dict[int, _Pair | None]) -> list[Finding]:
    """Unread branches, except branches that refer back to an enclosing pair: its own findings explain them."""
    if not pair.failed:
        return []
    readers_around: dict[int, set[int]] = {}
    place: _Pair | None = pair
    while place is not None:
        readers_around.setdefault(id(place.writer), set()).add(id(place.reader))
        place = within[id(place)]
    unread = sorted(
        (choice for choice in pair.failed if not choice.leads_back_to(readers_around)), key=lambda choice: choice.index
    )
    return [findings.missing_branch(choice.path, choice.writer) for choice in unread[: limits.INCOMPATIBILITIES_MAX]]


def _incompatibility(path: str, pair: _Pair, finding: Finding, fragments: dict[int, str]) -> Incompatibility:
    for side in (pair.reader, pair.writer):
        if id(side) not in fragments:
            fragments[id(side)] = beginning(side, _FRAGMENT_CHARS_MAX)
    place = (path + finding.path) or "/"
    if len(place) > _PATH_CHARS_MAX:
        half = _PATH_CHARS_MAX // 2
        place = f"{place[:half]}…{place[-half:]}"
    return Incompatibility(
        kind=finding.kind,
        path=place,
        message=finding.message,
        reader=fragments[id(pair.reader)],
        writer=fragments[id(pair.writer)],
        advice=finding.advice,
        detail=finding.detail,
    )
