"""Lists the differences between two Protobuf schemas, by the rules of Confluent's registry.

Types of the schema itself are compared at their position. A type from another file is compared where a field uses it,
once per pair. Its differences have the name of the type, and the field is also reported if they make it incompatible. A
pair that is already being compared counts as compatible.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from google.protobuf import descriptor_pb2

from headgate.registry.compatibility.protobuf.kinds import Difference, Kind
from headgate.registry.compatibility.protobuf.types import (
    TEXTUAL,
    FieldProto,
    MessageProto,
    MessageType,
    Shape,
    Side,
    generated,
    oneofs,
    scalar_group,
)

EnumProto = descriptor_pb2.EnumDescriptorProto


@dataclass(frozen=True, slots=True)
class _Use:
    """A field whose type is in another file on one side: the pair of full names to compare."""

    path: str
    pair: tuple[str, str]
    writer: str
    reader: str


_Items = Iterator[Difference | _Use]


@dataclass(slots=True)
class _Frame:
    use: _Use | None
    items: _Items
    incompatible: bool = False


class Comparison:
    def __init__(self, writer: Side, reader: Side) -> None:
        self._writer = writer
        self._reader = reader

    def run(self) -> Iterator[Difference]:
        """All differences, each once. Iterative, because chains of types in other files can be long."""
        seen: set[tuple[Kind, str]] = set()
        for difference in self._expand():
            key = (difference.kind, difference.path)
            if key not in seen:
                seen.add(key)
                yield difference

    def _expand(self) -> Iterator[Difference]:
        incompatible: dict[tuple[str, str], bool] = {}
        stack = [_Frame(None, self._files())]
        while stack:
            frame = stack[-1]
            item = next(frame.items, None)
            if isinstance(item, Difference):
                frame.incompatible |= not item.kind.compatible
                yield item
            elif isinstance(item, _Use):
                if item.pair not in incompatible:
                    # Assumed compatible until its comparison ends.
                    incompatible[item.pair] = False
                    stack.append(_Frame(item, self._pair(item.pair)))
                elif incompatible[item.pair]:
                    frame.incompatible = True
                    yield _changed(item)
            else:
                stack.pop()
                if frame.use is not None and frame.incompatible:
                    incompatible[frame.use.pair] = True
                    stack[-1].incompatible = True
                    yield _changed(frame.use)

    def _files(self) -> _Items:
        writer, reader = self._writer.proto, self._reader.proto
        if writer.package != reader.package:
            yield Difference(Kind.PACKAGE_CHANGED, "#/", writer.package, reader.package)
        empty: frozenset[str] = frozenset()
        yield from self._messages(writer.message_type, reader.message_type, "#", writer.package, reader.package, empty)
        yield from _enums(writer.enum_type, reader.enum_type, "#")

    def _pair(self, pair: tuple[str, str]) -> _Items:
        writer, reader = self._writer.message(pair[0]), self._reader.message(pair[1])
        path = "#/" + writer.local_name.replace(".", "/")
        return self._message(writer.proto, reader.proto, path, pair[0], pair[1])

    def _messages(
        self,
        writer: Iterable[MessageProto],
        reader: Iterable[MessageProto],
        path: str,
        writer_scope: str,
        reader_scope: str,
        belong_to_fields: frozenset[str],
    ) -> _Items:
        old = {message.name: (index, message) for index, message in enumerate(writer)}
        new = {message.name: (index, message) for index, message in enumerate(reader)}
        for name in dict.fromkeys((*old, *new)):
            place = f"{path}/{name}"
            if name in old and name in new:
                if old[name][1].options.map_entry or new[name][1].options.map_entry:
                    continue
                full = (_join(writer_scope, name), _join(reader_scope, name))
                yield from self._message(old[name][1], new[name][1], place, *full)
                if old[name][0] != new[name][0] and name not in belong_to_fields:
                    yield Difference(Kind.MESSAGE_MOVED, place)
            elif name not in belong_to_fields:
                kind = Kind.MESSAGE_REMOVED if name in old else Kind.MESSAGE_ADDED
                yield Difference(kind, place, *_one_side(f"message {name}", name in old))

    def _message(self, writer: MessageProto, reader: MessageProto, path: str, old: str, new: str) -> _Items:
        old_oneofs, new_oneofs = oneofs(writer), oneofs(reader)
        old_fields = {field.number: field for field in writer.field}
        new_fields = {field.number: field for field in reader.field}
        yield from _exclusions(old_fields, old_oneofs, new_oneofs, path)
        for name in sorted({*old_oneofs.values()} ^ {*new_oneofs.values()}):
            gone = name in old_oneofs.values()
            kind = Kind.ONEOF_REMOVED if gone else Kind.ONEOF_ADDED
            yield Difference(kind, f"{path}/{name}", *_one_side(f"oneof {name}", gone))
        deleted = _deleted_whole(old_oneofs, new_oneofs, new_fields)
        for number in sorted({*old_fields, *new_fields}):
            was, now = old_fields.get(number), new_fields.get(number)
            if now is None:
                assert was is not None
                yield from self._removed(was, old_oneofs.get(number), deleted, path, old)
            elif was is None:
                yield from self._added(now, new_oneofs.get(number), path, new)
            else:
                if number in old_oneofs and number not in new_oneofs:
                    yield Difference(Kind.ONEOF_FIELD_MOVED_TO_TOP_LEVEL, f"{path}/{number}")
                place = f"{path}/{new_oneofs[number]}/{number}" if number in new_oneofs else f"{path}/{number}"
                yield from self._field(was, now, place, old, new)
        belong = generated(writer) | generated(reader)
        yield from self._messages(writer.nested_type, reader.nested_type, path, old, new, belong)
        yield from _enums(writer.enum_type, reader.enum_type, path)

    def _removed(
        self, was: FieldProto, oneof: str | None, deleted: frozenset[str], path: str, owner: str
    ) -> Iterator[Difference]:
        spelled = self._writer.spelled(was, owner)
        if oneof is not None:
            # Removing a oneof with all its members is compatible.
            if oneof not in deleted:
                yield Difference(Kind.ONEOF_FIELD_REMOVED, f"{path}/{oneof}/{was.number}", spelled)
            return
        required = self._writer.label(was, owner) == "required"
        kind = Kind.REQUIRED_FIELD_REMOVED if required else Kind.FIELD_REMOVED
        yield Difference(kind, f"{path}/{was.number}", spelled)

    def _added(self, now: FieldProto, oneof: str | None, path: str, owner: str) -> Iterator[Difference]:
        spelled = self._reader.spelled(now, owner)
        if oneof is not None:
            yield Difference(Kind.ONEOF_FIELD_ADDED, f"{path}/{oneof}/{now.number}", "", spelled)
            return
        required = self._reader.label(now, owner) == "required"
        kind = Kind.REQUIRED_FIELD_ADDED if required else Kind.FIELD_ADDED
        yield Difference(kind, f"{path}/{now.number}", "", spelled)

    def _field(self, was: FieldProto, now: FieldProto, path: str, old: str, new: str) -> _Items:
        spelled = (self._writer.spelled(was, old), self._reader.spelled(now, new))
        if was.name != now.name:
            yield Difference(Kind.FIELD_NAME_CHANGED, path, *spelled)
        labels = (self._writer.label(was, old), self._reader.label(now, new))
        yield from self._types(was, now, labels, path, spelled)

    def _types(
        self,
        was: FieldProto,
        now: FieldProto,
        labels: tuple[str | None, str | None],
        path: str,
        spelled: tuple[str, str],
    ) -> _Items:
        shape = self._writer.shape(was)
        if shape is not self._reader.shape(now):
            yield Difference(Kind.FIELD_KIND_CHANGED, path, *spelled)
        elif shape is Shape.SCALAR:
            yield from _scalars(was, now, labels, path, spelled)
        elif shape is Shape.MAP:
            old_parts, new_parts = self._writer.map_parts(was), self._reader.map_parts(now)
            for old_part, new_part in zip(old_parts, new_parts, strict=True):
                yield from self._types(old_part, new_part, (None, None), path, spelled)
        else:
            yield from self._named(was, now, path, spelled)

    def _named(self, was: FieldProto, now: FieldProto, path: str, spelled: tuple[str, str]) -> _Items:
        old: MessageType = self._writer.message(was.type_name)
        new: MessageType = self._reader.message(now.type_name)
        if old.local_name != new.local_name:
            yield Difference(Kind.FIELD_NAMED_TYPE_CHANGED, path, *spelled)
        elif not (old.in_main_file and new.in_main_file):
            yield _Use(path, (was.type_name[1:], now.type_name[1:]), *spelled)


def _exclusions(
    old_fields: Mapping[int, FieldProto], old_oneofs: Mapping[int, str], new_oneofs: Mapping[int, str], path: str
) -> Iterator[Difference]:
    """Fields that could be set together and now exclude each other. Old data would lose all but the last."""
    members: dict[str, list[int]] = {}
    for number, oneof in new_oneofs.items():
        members.setdefault(oneof, []).append(number)
    for oneof, numbers in members.items():
        moved = [number for number in numbers if number in old_fields and number not in old_oneofs]
        groups = {old_oneofs[number] for number in numbers if number in old_oneofs}
        if len(moved) + len(groups) > 1:
            several = len(moved) > 1
            kind = Kind.MULTIPLE_FIELDS_MOVED_TO_ONEOF if several else Kind.FIELD_MOVED_TO_EXISTING_ONEOF
            before = [*(f"oneof {name}" for name in sorted(groups)), *(old_fields[number].name for number in moved)]
            yield Difference(kind, f"{path}/{oneof}", ", ".join(before), f"oneof {oneof}")


def _deleted_whole(
    old_oneofs: Mapping[int, str], new_oneofs: Mapping[int, str], new_fields: Mapping[int, FieldProto]
) -> frozenset[str]:
    """Removed oneofs without any remaining member."""
    kept = {oneof for number, oneof in old_oneofs.items() if number in new_fields}
    return frozenset(old_oneofs.values()) - frozenset(new_oneofs.values()) - kept


def _scalars(
    was: FieldProto, now: FieldProto, labels: tuple[str | None, str | None], path: str, spelled: tuple[str, str]
) -> Iterator[Difference]:
    group = scalar_group(was)
    if group != scalar_group(now):
        yield Difference(Kind.FIELD_SCALAR_KIND_CHANGED, path, *spelled)
    elif None not in labels and labels[0] != labels[1]:
        # Only written labels count, as in Confluent's registry: a singular field of proto3 has no label.
        textual = group == TEXTUAL
        kind = Kind.FIELD_STRING_OR_BYTES_LABEL_CHANGED if textual else Kind.FIELD_NUMERIC_LABEL_CHANGED
        yield Difference(kind, path, *spelled)


def _enums(writer: Iterable[EnumProto], reader: Iterable[EnumProto], path: str) -> Iterator[Difference]:
    old, new = {enum.name: enum for enum in writer}, {enum.name: enum for enum in reader}
    for name in dict.fromkeys((*old, *new)):
        place = f"{path}/{name}"
        if name in old and name in new:
            yield from _constants(old[name], new[name], place)
        else:
            kind = Kind.ENUM_REMOVED if name in old else Kind.ENUM_ADDED
            yield Difference(kind, place, *_one_side(f"enum {name}", name in old))


def _constants(writer: EnumProto, reader: EnumProto, path: str) -> Iterator[Difference]:
    old, new = {one.number: one.name for one in writer.value}, {one.number: one.name for one in reader.value}
    for number in sorted({*old, *new}):
        place = f"{path}/{number}"
        if number not in new:
            yield Difference(Kind.ENUM_CONST_REMOVED, place, old[number])
        elif number not in old:
            yield Difference(Kind.ENUM_CONST_ADDED, place, "", new[number])
        elif old[number] != new[number]:
            yield Difference(Kind.ENUM_CONST_CHANGED, place, old[number], new[number])


def _changed(use: _Use) -> Difference:
    return Difference(Kind.FIELD_NAMED_TYPE_CHANGED, use.path, use.writer, use.reader)


def _one_side(text: str, writer: bool) -> tuple[str, str]:
    return (text, "") if writer else ("", text)


def _join(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name
