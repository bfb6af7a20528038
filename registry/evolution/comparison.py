"""Lists the changes from one version of a schema to another and attributes each incompatibility to a change.

The checker of the language decides what is incompatible. The differences only explain it: an incompatibility belongs to
the difference at its path, or at the nearest path around it. If there is none, it belongs to all differences below its
path. If no difference explains an incompatibility, the incompatibility is listed as a separate change.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, cast

from headgate.registry.compatibility.incompatibility import Incompatibility, Policy
from headgate.registry.evolution.difference import DIFFERENCES_MAX, Difference
from headgate.registry.formats.base import ParsedSchema
from headgate.registry.languages import Languages
from headgate.registry.model import Level, SchemaType

_OTHER: Final = Difference("text changed", "", "", "only the order or form of declarations, or unused definitions")


@dataclass(frozen=True, slots=True)
class SchemaChange:
    kind: str
    path: str
    old: str = ""
    new: str = ""
    backward: tuple[Incompatibility, ...] = ()
    """Reasons why the new schema cannot read old data."""
    forward: tuple[Incompatibility, ...] = ()
    """Reasons why the old schema cannot read new data."""


@dataclass(frozen=True, slots=True)
class Evolution:
    changes: tuple[SchemaChange, ...]
    is_complete: bool = True
    """False if there are more changes than the limit."""

    def breaks(self, level: Level) -> bool:
        return any((level.backward and one.backward) or (level.forward and one.forward) for one in self.changes)


def compare(languages: Languages, old: ParsedSchema, new: ParsedSchema, policy: Policy = Policy.STRICT) -> Evolution:
    """The changes from `old` to `new`. Raises InvalidSchema if the schemas are too complex to compare."""
    if old.type is not new.type:
        kind = "SCHEMA_TYPE_CHANGED"
        reason = (Incompatibility(kind, "", f"the schema language changed from {old.type} to {new.type}"),)
        return Evolution((SchemaChange("language changed", "", old.type, new.type, reason, reason),))
    found = list(islice(_differences(old, new), DIFFERENCES_MAX + 1))
    is_complete = len(found) <= DIFFERENCES_MAX
    found = found[:DIFFERENCES_MAX]
    backward = languages.check(new, old, policy)
    forward = languages.check(old, new, policy)
    if not found and not backward and not forward and old.canonical != new.canonical:
        found = [_OTHER]
    by_backward, lost_backward = _attributed(backward, [one.backward_path for one in found])
    by_forward, lost_forward = _attributed(forward, [one.forward_path for one in found])
    changes = [
        SchemaChange(one.kind, one.path, one.old, one.new, tuple(by_backward[at]), tuple(by_forward[at]))
        for at, one in enumerate(found)
    ]
    changes += [SchemaChange("incompatible", one.path, one.writer, one.reader, (one,)) for one in lost_backward]
    changes += [SchemaChange("incompatible", one.path, one.reader, one.writer, (), (one,)) for one in lost_forward]
    return Evolution(tuple(changes), is_complete)


def _differences(old: ParsedSchema, new: ParsedSchema) -> Iterator[Difference]:
    match new.type:
        case SchemaType.AVRO:
            from headgate.registry.evolution import avro

            return avro.differences(cast(Any, old).root, cast(Any, new).root)
        case SchemaType.JSON:
            from headgate.registry.evolution import json_schema

            return json_schema.differences(cast(Any, old).root, cast(Any, new).root)
        case SchemaType.PROTOBUF:
            from headgate.registry.evolution import protobuf

            return protobuf.differences(cast(Any, old), cast(Any, new))


def _attributed(
    incompatibilities: list[Incompatibility], paths: list[str | None]
) -> tuple[list[list[Incompatibility]], list[Incompatibility]]:
    """For each path, its incompatibilities. Then the incompatibilities that fit no path."""
    places: dict[str, list[int]] = {}
    for at, path in enumerate(paths):
        if path is not None:
            places.setdefault(path.rstrip("/"), []).append(at)
    owned: list[list[Incompatibility]] = [[] for _ in paths]
    lost = []
    for one in incompatibilities:
        owners = _owners(one.path.rstrip("/"), places)
        for at in owners:
            owned[at].append(one)
        if not owners:
            lost.append(one)
    return owned, lost


def _owners(path: str, places: dict[str, list[int]]) -> list[int]:
    around = path
    while around not in places and around:
        around = around.rpartition("/")[0]
    if around in places:
        return places[around]
    return [at for place, found in places.items() if place.startswith(f"{path}/") for at in found]
