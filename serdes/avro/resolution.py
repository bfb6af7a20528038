"""Resolves a writer schema and a reader schema into a plan for decoders.

Follows the Avro 1.12 specification, "Schema Resolution". `docs/wire-format.md` documents the choices that it leaves
open. The row-wise decoder compiles the plan into closures, the columnar decoder into an integer program, so both
resolve alike.

A mismatch below a branch of a writer union makes that branch `Unresolvable`, which affects only rows with that branch.
Any other mismatch makes the whole pair `Unresolvable`. Records are resolved from a work list without recursion, because
chains of named types can exceed the stack.
"""

from dataclasses import dataclass
from typing import TypeAlias

from headgate.serdes.avro.defaults import default_value
from headgate.serdes.avro.schema import (
    Array,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Named,
    Primitive,
    Record,
    Schema,
    Union,
    is_zero_size,
    type_name,
    unqualified,
)

PROMOTIONS: dict[str, tuple[str, ...]] = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


@dataclass(frozen=True, slots=True, eq=False)
class ScalarPlan:
    """A primitive, encoded as `writer`, decoded as `reader`. `logical` is the logical type of the reader."""

    writer: str
    reader: str
    logical: Logical | None


@dataclass(frozen=True, slots=True, eq=False)
class FixedPlan:
    size: int
    logical: Logical | None


@dataclass(frozen=True, slots=True, eq=False)
class EnumPlan:
    writer: Enum
    reader: Enum
    targets: tuple[int | None, ...]
    """For each writer symbol, the index of the reader symbol. None if the reader has neither the symbol nor a default.
    """


@dataclass(frozen=True, slots=True, eq=False)
class ArrayPlan:
    reader: Array
    items: "Plan"
    zero_size: bool
    """Whether the writer's items take zero bytes, so that their count needs a limit."""


@dataclass(frozen=True, slots=True, eq=False)
class MapPlan:
    reader: Map
    values: "Plan"


@dataclass(frozen=True, slots=True, eq=False)
class UnionPlan:
    """A writer union: read the branch index, then the branch."""

    branches: tuple["Plan", ...]


@dataclass(frozen=True, slots=True, eq=False)
class IntoUnion:
    """The value becomes branch `branch` of the reader union. Nothing is read for it."""

    branch: int
    name: str
    plan: "Plan"


@dataclass(frozen=True, slots=True, eq=False)
class Unresolvable:
    detail: str


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A field in the writer's order. Decoded into the reader field `target`, or skipped if `target` is None."""

    name: str
    writer: Schema
    target: int | None
    plan: "Plan | None"


@dataclass(slots=True, eq=False)
class RecordPlan:
    """Not frozen, because a recursive record refers to its own plan."""

    writer: Record
    reader: Record
    steps: tuple[Step, ...] = ()
    defaulted: tuple[int, ...] = ()
    """Indexes of the reader fields that get their default."""
    error: str | None = None


Plan: TypeAlias = (
    ScalarPlan | FixedPlan | EnumPlan | ArrayPlan | MapPlan | UnionPlan | IntoUnion | RecordPlan | Unresolvable
)


def resolve(writer: Schema, reader: Schema) -> Plan:
    """How to read a value of `writer` as a value of `reader`. `Unresolvable` if no value can be read."""
    resolver = _Resolver()
    plan = resolver.pair(writer, reader)
    resolver.work_off()
    resolver.spread_errors()
    plan = resolver.settled(plan)
    resolver.settle_steps()
    return plan


class _Resolver:
    def __init__(self) -> None:
        self._records: dict[tuple[Record, Record], RecordPlan] = {}
        self._work: list[RecordPlan] = []
        self._all: list[RecordPlan] = []

    def pair(self, writer: Schema, reader: Schema) -> Plan:
        if isinstance(writer, Union):
            return UnionPlan(tuple(self.pair(branch, reader) for branch in writer.branches))
        if isinstance(reader, Union):
            return self._into_union(writer, reader)
        if isinstance(writer, Primitive) and isinstance(reader, Primitive):
            return _scalar(writer, reader)
        if isinstance(writer, Array) and isinstance(reader, Array):
            return ArrayPlan(reader, self.pair(writer.items, reader.items), is_zero_size(writer.items))
        if isinstance(writer, Map) and isinstance(reader, Map):
            return MapPlan(reader, self.pair(writer.values, reader.values))
        if isinstance(writer, Record) and isinstance(reader, Record):
            return self._record(writer, reader)
        if isinstance(writer, Enum) and isinstance(reader, Enum):
            return _enum(writer, reader)
        if isinstance(writer, Fixed) and isinstance(reader, Fixed):
            return _fixed(writer, reader)
        return Unresolvable(f"{type_name(writer)} cannot be read as {type_name(reader)}")

    def _into_union(self, writer: Schema, reader: Union) -> Plan:
        index = _matching_branch(writer, reader)
        if index is None:
            names = ", ".join(type_name(branch) for branch in reader.branches)
            return Unresolvable(f"{type_name(writer)} matches no branch of the reader's union of {names}")
        plan = self.pair(writer, reader.branches[index])
        return plan if isinstance(plan, Unresolvable) else IntoUnion(index, type_name(reader.branches[index]), plan)

    def _record(self, writer: Record, reader: Record) -> RecordPlan:
        plan = self._records.get((writer, reader))
        if plan is None:
            plan = self._records[writer, reader] = RecordPlan(writer, reader)
            self._work.append(plan)
            self._all.append(plan)
        return plan

    def work_off(self) -> None:
        while self._work:
            plan = self._work.pop()
            targets = _field_targets(plan.writer, plan.reader)
            steps: list[Step] = []
            for index, field in enumerate(plan.writer.fields):
                target = targets.get(index)
                read = None if target is None else self.pair(field.schema, plan.reader.fields[target].schema)
                steps.append(Step(field.name, field.schema, target, read))
            plan.steps = tuple(steps)
            read_targets = set(targets.values())
            plan.defaulted = tuple(index for index in range(len(plan.reader.fields)) if index not in read_targets)
            plan.error = next(
                (fault for index in plan.defaulted if (fault := _default_fault(plan.reader.fields[index]))), None
            )

    def spread_errors(self) -> None:
        """A record fails if any of its fields fails.

        Repeats until nothing changes, because records refer to each other.
        """
        changed = True
        while changed:
            changed = False
            for plan in reversed(self._all):
                if plan.error is None:
                    plan.error = next(
                        (
                            f"{step.name}: {detail}"
                            for step in plan.steps
                            if step.plan is not None and (detail := _failure(step.plan)) is not None
                        ),
                        None,
                    )
                    changed = changed or plan.error is not None

    def settle_steps(self) -> None:
        for plan in self._all:
            plan.steps = tuple(
                step if step.plan is None else Step(step.name, step.writer, step.target, self.settled(step.plan))
                for step in plan.steps
            )

    def settled(self, plan: Plan) -> Plan:
        """The plan with all failing parts replaced by `Unresolvable`, down to the next records."""
        detail = _failure(plan)
        if detail is not None:
            return Unresolvable(detail)
        if isinstance(plan, UnionPlan):
            return UnionPlan(tuple(self.settled(branch) for branch in plan.branches))
        if isinstance(plan, ArrayPlan):
            return ArrayPlan(plan.reader, self.settled(plan.items), plan.zero_size)
        if isinstance(plan, MapPlan):
            return MapPlan(plan.reader, self.settled(plan.values))
        if isinstance(plan, IntoUnion):
            return IntoUnion(plan.branch, plan.name, self.settled(plan.plan))
        return plan


def _default_fault(field: Field) -> str | None:
    if not field.has_default:
        return f"the writer has no field {field.name!r:.200} and the reader no default for it"
    try:
        default_value(field.schema, field.default)
    except ValueError as error:
        return f"the default of the reader's field {field.name!r:.200} is not valid: {error}"
    return None


def _failure(plan: Plan) -> str | None:
    """Why this plan cannot read any value, or None. A writer union fails only if all its branches fail."""
    if isinstance(plan, Unresolvable):
        return plan.detail
    if isinstance(plan, RecordPlan):
        return plan.error
    if isinstance(plan, ArrayPlan):
        return _failure(plan.items)
    if isinstance(plan, MapPlan):
        return _failure(plan.values)
    if isinstance(plan, IntoUnion):
        return _failure(plan.plan)
    if isinstance(plan, UnionPlan):
        failures = [_failure(branch) for branch in plan.branches]
        if failures and all(failure is not None for failure in failures):
            return failures[0]
    return None


def _scalar(writer: Primitive, reader: Primitive) -> Plan:
    if writer.kind != reader.kind and reader.kind not in PROMOTIONS.get(writer.kind, ()):
        return Unresolvable(f"{writer.kind} cannot be read as {reader.kind}")
    conflict = _logical_conflict(writer.logical, reader.logical)
    return Unresolvable(conflict) if conflict else ScalarPlan(writer.kind, reader.kind, reader.logical)


def _logical_conflict(writer: Logical | None, reader: Logical | None) -> str | None:
    """Whether both sides have different logical types. Decoding would scale or shift all values silently."""
    if writer is None or reader is None or (writer.name, writer.scale) == (reader.name, reader.scale):
        return None
    if writer.name == reader.name:
        return f"decimal of scale {writer.scale} cannot be read with scale {reader.scale}"
    return f"{writer.name} cannot be read as {reader.name}"


def _same_name(writer: Named, reader: Named) -> bool:
    return unqualified(writer.name) == unqualified(reader.name) or writer.name in reader.aliases


def _fixed(writer: Fixed, reader: Fixed) -> Plan:
    if not _same_name(writer, reader):
        return Unresolvable(f"fixed {writer.name} cannot be read as {reader.name}")
    if writer.size != reader.size:
        return Unresolvable(f"fixed {writer.name} of {writer.size} bytes cannot be read with {reader.size}")
    conflict = _logical_conflict(writer.logical, reader.logical)
    return Unresolvable(conflict) if conflict else FixedPlan(writer.size, reader.logical)


def _enum(writer: Enum, reader: Enum) -> Plan:
    if not _same_name(writer, reader):
        return Unresolvable(f"enum {writer.name} cannot be read as {reader.name}")
    places = {symbol: index for index, symbol in enumerate(reader.symbols)}
    fallback = None if reader.default is None else places[reader.default]
    return EnumPlan(writer, reader, tuple(places.get(symbol, fallback) for symbol in writer.symbols))


def _field_targets(writer: Record, reader: Record) -> dict[int, int]:
    """Map writer fields to reader fields: by name first, then by the reader's aliases. Each is used once."""
    places = {field.name: index for index, field in enumerate(writer.fields)}
    targets: dict[int, int] = {}
    left: list[tuple[int, Field]] = []
    for index, field in enumerate(reader.fields):
        if field.name in places:
            targets[places[field.name]] = index
        else:
            left.append((index, field))
    for index, field in left:
        alias = next((alias for alias in field.aliases if alias in places and places[alias] not in targets), None)
        if alias is not None:
            targets[places[alias]] = index
    return targets


def _matching_branch(writer: Schema, reader: Union) -> int | None:
    """The reader branch for a value of `writer`: the same type (and name), otherwise the first promotion."""
    if isinstance(writer, (Record, Enum, Fixed)):
        same = [index for index, branch in enumerate(reader.branches) if type(branch) is type(writer)]
        named = {index: branch for index in same if isinstance(branch := reader.branches[index], (Record, Enum, Fixed))}
        for matches in (
            lambda branch: branch.name == writer.name,
            lambda branch: writer.name in branch.aliases,
            lambda branch: unqualified(branch.name) == unqualified(writer.name),
        ):
            found = next((index for index, branch in named.items() if matches(branch)), None)
            if found is not None:
                return found
        # A renamed record without an alias still matches if it is the only record.
        return same[0] if isinstance(writer, Record) and len(same) == 1 else None
    name = type_name(writer)
    for index, branch in enumerate(reader.branches):
        if type_name(branch) == name and type(branch) is type(writer):
            return index
    promoted = PROMOTIONS.get(name, ())
    return next(
        (
            index
            for index, branch in enumerate(reader.branches)
            if isinstance(branch, Primitive) and branch.kind in promoted
        ),
        None,
    )
