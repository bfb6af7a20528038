"""Differences between two Avro schemas.

Fields match by name, then by an alias of the new field. Union branches match by type and full name, then by unqualified
name. Paths for the checker follow its rules: field numbers are those of the reader, branch numbers those of the writer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from headgate.registry.compatibility.avro.matching import promotes
from headgate.registry.evolution.difference import Difference, shortened
from headgate.registry.formats.avro.types import (
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Properties,
    Record,
    Union,
)
from headgate.registry.formats.avro.writer import beginning
from headgate.registry.formats.json_text import dump

_TYPE_CHARS_MAX: Final = 80


@dataclass(frozen=True, slots=True)
class _Pair:
    old: AvroType
    new: AvroType
    path: str
    backward: str
    forward: str

    def below(self, old: AvroType, new: AvroType, path: str, backward: str, forward: str) -> "_Pair":
        return _Pair(old, new, self.path + path, self.backward + backward, self.forward + forward)


def differences(old: AvroType, new: AvroType) -> Iterator[Difference]:
    """All differences. Iterative, because chains of records can be long. Each pair of types is compared once."""
    seen: set[tuple[int, int]] = set()
    stack = [_Pair(old, new, "", "", "")]
    while stack:
        pair = stack.pop()
        key = (id(pair.old), id(pair.new))
        if key in seen:
            continue
        seen.add(key)
        parts: list[_Pair] = []
        yield from _compare(pair, parts)
        stack.extend(reversed(parts))


def _compare(pair: _Pair, parts: list[_Pair]) -> Iterator[Difference]:
    old, new = pair.old, pair.new
    if isinstance(old, Union) or isinstance(new, Union):
        yield from _unions(pair, parts)
    elif old.kind != new.kind:
        yield _type_difference(pair)
    elif isinstance(old, Record | Enum | Fixed) and isinstance(new, Record | Enum | Fixed):
        yield from _named(pair, old, new, parts)
    else:
        yield from _properties(pair.path, cast(Any, old).properties, cast(Any, new).properties)
        if isinstance(old, Array) and isinstance(new, Array):
            parts.append(pair.below(old.items, new.items, "[]", "/items", "/items"))
        elif isinstance(old, Map) and isinstance(new, Map):
            parts.append(pair.below(old.values, new.values, "{}", "/values", "/values"))


def _type_difference(pair: _Pair) -> Difference:
    old, new = pair.old, pair.new
    kind = "type changed"
    if isinstance(old, Primitive) and isinstance(new, Primitive) and promotes(new.kind, old.kind):
        kind = "type widened"
    elif isinstance(old, Primitive) and isinstance(new, Primitive) and promotes(old.kind, new.kind):
        kind = "type narrowed"
    return Difference(kind, pair.path, _type(old), _type(new), pair.backward, pair.forward)


def _named(pair: _Pair, old: Named, new: Named, parts: list[_Pair]) -> Iterator[Difference]:
    path = pair.path or new.name.simple
    if old.name.full != new.name.full:
        kind = "type renamed with alias" if _is_alias(new, old) else "type renamed"
        yield Difference(kind, path, old.name.full, new.name.full, f"{pair.backward}/name", f"{pair.forward}/name")
    elif {alias.full for alias in old.aliases} != {alias.full for alias in new.aliases}:
        yield Difference("aliases changed", path, _aliases(old), _aliases(new))
    yield from _docs(path, old.doc, new.doc)
    yield from _properties(path, old.properties, new.properties)
    if isinstance(old, Record) and isinstance(new, Record):
        yield from _fields(pair, old, new, parts)
    elif isinstance(old, Enum) and isinstance(new, Enum):
        yield from _enums(pair, path, old, new)
    elif isinstance(old, Fixed) and isinstance(new, Fixed) and old.size != new.size:
        sizes = (f"{old.size} bytes", f"{new.size} bytes")
        yield Difference("size changed", path, *sizes, f"{pair.backward}/size", f"{pair.forward}/size")


def _is_alias(new: Named, old: Named) -> bool:
    return any(alias.full == old.name.full for alias in new.aliases)


def _aliases(named: Named) -> str:
    return shortened(", ".join(alias.full for alias in named.aliases))


def _enums(pair: _Pair, path: str, old: Enum, new: Enum) -> Iterator[Difference]:
    added, removed = _only(new.symbols, old.symbols), _only(old.symbols, new.symbols)
    if added:
        yield Difference("symbols added", path, "", added, None, f"{pair.forward}/symbols")
    if removed:
        yield Difference("symbols removed", path, removed, "", f"{pair.backward}/symbols", None)
    if not added and not removed and old.symbols != new.symbols:
        yield Difference("symbols reordered", path)
    if old.default != new.default:
        yield Difference("default symbol changed", path, old.default or "", new.default or "")


def _only(symbols: tuple[str, ...], others: tuple[str, ...]) -> str:
    known = set(others)
    return shortened(", ".join(symbol for symbol in symbols if symbol not in known))


def _fields(pair: _Pair, old: Record, new: Record, parts: list[_Pair]) -> Iterator[Difference]:
    before = {field.name: (at, field) for at, field in enumerate(old.fields)}
    names = {field.name for field in new.fields}
    matched: set[str] = set()
    for at, field in enumerate(new.fields):
        path = _join(pair.path, field.name)
        backward = f"{pair.backward}/fields/{at}"
        renamed = [name for name in field.aliases if name in before and name not in names and name not in matched]
        name = field.name if field.name in before else next(iter(renamed), None)
        if name is None:
            yield Difference("field added", path, "", _field(field), backward, None)
            continue
        matched.add(name)
        index, was = before[name]
        forward = f"{pair.forward}/fields/{index}"
        if name != field.name:
            yield Difference("field renamed with alias", path, name, field.name, backward, forward)
        yield from _attributes(path, was, field)
        parts.append(_Pair(was.type, field.type, path, f"{backward}/type", f"{forward}/type"))
    for name, (at, field) in before.items():
        if name not in matched:
            forward = f"{pair.forward}/fields/{at}"
            yield Difference("field removed", _join(pair.path, name), _field(field), "", None, forward)
    kept = [field.name for field in old.fields if field.name in names]
    if kept != [field.name for field in new.fields if field.name in before]:
        yield Difference("fields reordered", pair.path or new.name.simple)


def _attributes(path: str, old: Field, new: Field) -> Iterator[Difference]:
    was, now = (dump(side.default) if side.has_default else "" for side in (old, new))
    if was != now:
        kind = "default added" if not was else "default changed" if now else "default removed"
        yield Difference(kind, path, shortened(was), shortened(now))
    if old.name == new.name and set(old.aliases) != set(new.aliases):
        yield Difference("aliases changed", path, shortened(", ".join(old.aliases)), shortened(", ".join(new.aliases)))
    if old.order != new.order:
        yield Difference("sort order changed", path, old.order, new.order)
    yield from _docs(path, old.doc, new.doc)
    yield from _properties(path, old.properties, new.properties)


def _unions(pair: _Pair, parts: list[_Pair]) -> Iterator[Difference]:
    old, new = (side.branches if isinstance(side, Union) else [side] for side in (pair.old, pair.new))
    is_old, is_new = isinstance(pair.old, Union), isinstance(pair.new, Union)
    matches = _matches(old, new)
    for at, found in sorted(matches.items()):
        backward, forward = f"/{found}" if is_old else "", f"/{at}" if is_new else ""
        parts.append(pair.below(old[found], new[at], "", backward, forward))
    for at, branch in enumerate(new):
        if at not in matches:
            forward = f"{pair.forward}/{at}" if is_new else pair.forward
            yield Difference("union branch added", pair.path, "", _type(branch), pair.backward, forward)
    kept = set(matches.values())
    for at, branch in enumerate(old):
        if at not in kept:
            backward = f"{pair.backward}/{at}" if is_old else pair.backward
            yield Difference("union branch removed", pair.path, _type(branch), "", backward, pair.forward)
    if [matches[at] for at in sorted(matches)] != sorted(kept):
        yield Difference("union reordered", pair.path)


def _matches(old: Sequence[AvroType], new: Sequence[AvroType]) -> dict[int, int]:
    """The old branch of each new branch that has one: by type and full name, then by the rules of the checker."""
    free = {_key(branch): at for at, branch in reversed([*enumerate(old)])}
    matches = {at: free.pop(_key(branch)) for at, branch in enumerate(new) if _key(branch) in free}
    by_name = {
        (branch.kind, name): at
        for at in free.values()
        if isinstance(branch := old[at], Record | Enum | Fixed)
        for name in (branch.name.full, branch.name.simple)
    }
    taken: set[int] = set()
    for at, branch in enumerate(new):
        if at not in matches and isinstance(branch, Record | Enum | Fixed):
            names = (branch.name.simple, *(alias.full for alias in branch.aliases))
            found = next((by_name[branch.kind, name] for name in names if (branch.kind, name) in by_name), None)
            if found is not None and found not in taken:
                taken.add(found)
                matches[at] = found
    return matches


def _key(branch: AvroType) -> tuple[str, str]:
    return branch.kind, branch.name.full if isinstance(branch, Record | Enum | Fixed) else ""


def _docs(path: str, old: str | None, new: str | None) -> Iterator[Difference]:
    if (old or "") != (new or ""):
        yield Difference("doc changed", path, shortened(old or ""), shortened(new or ""))


def _properties(path: str, old: Properties, new: Properties) -> Iterator[Difference]:
    for name in dict.fromkeys((*old, *new)):
        was, now = (dump(side[name]) if name in side else "" for side in (old, new))
        if was != now:
            label = "logical type" if name == "logicalType" else f"property {shortened(name)}"
            yield Difference(f"{label} changed", path, shortened(was), shortened(now))


def _field(field: Field) -> str:
    default = f" = {shortened(dump(field.default))}" if field.has_default else ""
    return _type(field.type) + default


def _type(avro_type: AvroType) -> str:
    if isinstance(avro_type, Primitive):
        return str(avro_type.properties.get("logicalType", avro_type.kind))
    if isinstance(avro_type, Record | Enum | Fixed):
        return avro_type.name.full
    return beginning(avro_type, _TYPE_CHARS_MAX)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
