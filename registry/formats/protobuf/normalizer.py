"""Normalizes the syntax tree: sorts everything that has no order and writes full names.

Follows Confluent's normalization:

- Imports and options are sorted.
- Each reserved or extension range is one statement.
- Fields are sorted by number, oneofs by their lowest number.
- Map entry messages become `map<>`.
- A proto2 file has no syntax line.

Messages keep their order, because serialized records contain their positions.
"""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Context, Decimal
from typing import Final

from google.protobuf import descriptor_pb2

from headgate.registry.formats.protobuf import syntax_tree as tree
from headgate.registry.formats.protobuf.cursor import DIGITS_MAX
from headgate.registry.formats.protobuf.default_values import default_literal, number_of
from headgate.registry.formats.protobuf.descriptors import json_name
from headgate.registry.formats.protobuf.symbols import TYPES, Kind, View

FieldProto = descriptor_pb2.FieldDescriptorProto
MessageProto = descriptor_pb2.DescriptorProto
_EXTENSION: Final = frozenset({Kind.EXTENSION})


def normalize(file: tree.File, view: View) -> tree.File:
    return _Normalizer(view).file(file)


class _Normalizer:
    def __init__(self, view: View) -> None:
        self._view = view
        self._fields: dict[str, dict[str, FieldProto]] = {}

    def file(self, file: tree.File) -> tree.File:
        scope = file.package
        unique = {(one.modifier, one.path): tree.Import(one.path, one.modifier) for one in file.imports}
        body: list[tree.Message | tree.Enum | tree.Extend | tree.Service] = []
        for one in file.body:
            if isinstance(one, tree.Message):
                body.append(self._message(one, scope))
            elif isinstance(one, tree.Enum):
                body.append(self._enum(one, scope))
            elif isinstance(one, tree.Service):
                body.append(self._service(one, scope))
        body += self._extends((one for one in file.body if isinstance(one, tree.Extend)), scope)
        return replace(
            file,
            syntax="proto3" if file.syntax == "proto3" else None,
            imports=tuple(unique[key] for key in sorted(unique)),
            options=self._options(file.options, scope),
            body=tuple(body),
        )

    def _message(self, message: tree.Message, scope: str) -> tree.Message:
        path = f"{scope}.{message.name}" if scope else message.name
        fields = [self._field(one, path) for one in message.body if isinstance(one, tree.Field)]
        oneofs = [self._oneof(one, path) for one in message.body if isinstance(one, tree.OneOf)]
        body: list[tree.Field | tree.OneOf | tree.Message | tree.Enum | tree.Extend] = [*sorted(fields, key=_number)]
        oneofs.sort(key=lambda oneof: oneof.fields[0].number)
        body += oneofs
        for one in message.body:
            if isinstance(one, tree.Message) and not self._is_map_entry(f"{path}.{one.name}"):
                body.append(self._message(one, path))
            elif isinstance(one, tree.Enum):
                body.append(self._enum(one, path))
        body += self._extends((one for one in message.body if isinstance(one, tree.Extend)), path)
        extensions = [
            tree.Extensions((one,), self._options(statement.options, path))
            for statement in message.extensions
            for one in statement.ranges
        ]
        return replace(
            message,
            body=tuple(body),
            options=self._options(message.options, path),
            reserved=_reserved(message.reserved),
            extensions=tuple(_with_single(sorted(extensions, key=lambda one: one.ranges[0].start))),
        )

    def _is_map_entry(self, full_name: str) -> bool:
        message = self._view.message(full_name)
        return message is not None and message.options.map_entry

    def _field(self, field: tree.Field, scope: str) -> tree.Field:
        options = self._options(self._pseudo_options(field, scope), scope)
        if field.group is not None:
            return replace(field, options=options, group=self._message(field.group, scope))
        label, type_name, key = field.label, self._full(field.type, scope), field.key_type
        if key is None and type_name.startswith(".") and self._is_map_entry(type_name[1:]):
            entry = self._view.message(type_name[1:])
            assert entry is not None
            key = _spelled(entry.field[0])
            type_name = _spelled(entry.field[1])
            label = None
        return replace(field, label=label, type=type_name, key_type=key, options=options)

    def _pseudo_options(self, field: tree.Field, scope: str) -> tuple[tree.Option, ...]:
        """Write defaults in the format of descriptors. Remove JSON names that equal the default."""
        found: list[tree.Option] = []
        for option in field.options:
            if option.spelled == "json_name" and option.value == tree.Text(json_name(field.name).encode()):
                continue
            proto = self._proto(field, scope) if option.spelled == "default" else None
            found.append(option if proto is None else replace(option, value=default_literal(proto)))
        return tuple(found)

    def _proto(self, field: tree.Field, scope: str) -> FieldProto | None:
        if scope not in self._fields:
            message = self._view.message(scope)
            self._fields[scope] = {one.name: one for one in message.field} if message is not None else {}
        extension = f"{scope}.{field.name}" if scope else field.name
        return self._fields[scope].get(field.name) or self._view.own.extensions.get(extension)

    def _oneof(self, oneof: tree.OneOf, scope: str) -> tree.OneOf:
        fields = sorted((self._field(one, scope) for one in oneof.fields), key=_number)
        return replace(oneof, fields=tuple(fields), options=self._options(oneof.options, scope))

    def _extends(self, extends: Iterable[tree.Extend], scope: str) -> list[tree.Extend]:
        by_name: dict[str, list[tree.Field]] = {}
        for extend in extends:
            fields = by_name.setdefault(self._full(extend.extendee, scope), [])
            fields += (self._field(one, scope) for one in extend.fields)
        return [tree.Extend(name, tuple(sorted(fields, key=_number))) for name, fields in by_name.items()]

    def _enum(self, enum: tree.Enum, scope: str) -> tree.Enum:
        path = f"{scope}.{enum.name}" if scope else enum.name
        constants = [replace(one, options=self._options(one.options, path)) for one in enum.constants]
        return replace(
            enum,
            constants=_sorted_constants(constants),
            options=self._options(enum.options, path),
            reserved=_reserved(enum.reserved),
        )

    def _service(self, service: tree.Service, scope: str) -> tree.Service:
        path = f"{scope}.{service.name}" if scope else service.name
        methods = [
            replace(
                one,
                input_type=self._full(one.input_type, path),
                output_type=self._full(one.output_type, path),
                options=self._options(one.options, path),
            )
            for one in service.methods
        ]
        return replace(service, methods=tuple(methods), options=self._options(service.options, path))

    def _full(self, type_name: str, scope: str) -> str:
        if type_name in tree.SCALARS:
            return type_name
        full = self._view.resolve(type_name, scope, TYPES)
        return f".{full}" if full is not None else type_name

    def _options(self, options: tuple[tree.Option, ...], scope: str) -> tuple[tree.Option, ...]:
        """Sort options by name. Merge separate parts of a custom option into one message literal."""
        if not options:
            return options
        merged: dict[str, list[tree.Option]] = {}
        for option in options:
            first = option.name[0]
            if first.extension:
                full = self._view.resolve(first.text, scope, _EXTENSION)
                first = tree.NamePart(full or first.text, extension=True)
            value = option.value
            if first.extension:
                for part in reversed(option.name[1:]):
                    value = tree.Aggregate(((f"[{part.text}]" if part.extension else part.text, value),))
                name: tuple[tree.NamePart, ...] = (first,)
            else:
                name = (first, *option.name[1:])
            merged.setdefault(".".join(part.text for part in name), []).append(tree.Option(name, value))
        found: list[tree.Option] = []
        for _name, group in sorted(merged.items()):
            found += self._merged(group, scope)
        return tuple(found)

    def _merged(self, group: list[tree.Option], scope: str) -> list[tree.Option]:
        name = group[0].name
        extension = self._view.extension(name[0].text) if name[0].extension else None
        message = self._message_of(extension)
        literals = [one.value for one in group if isinstance(one.value, tree.Aggregate)]
        if len(group) > 1 and len(literals) == len(group) and not _repeated(extension):
            value: tree.Value = tree.Aggregate(tuple(entry for one in literals for entry in one.entries))
            return [tree.Option(name, self._value(value, scope, message))]
        return [tree.Option(name, self._value(one.value, scope, message)) for one in group]

    def _value(self, value: tree.Value, scope: str, message: MessageProto | None) -> tree.Value:
        match value:
            case tree.Number(text):
                return tree.Number(_plain_number(text))
            case tree.Aggregate(entries):
                return self._aggregate(entries, scope, message)
            case tree.Sequence(items):
                return tree.Sequence(tuple(self._value(item, scope, message) for item in items))
            case _:
                return value

    def _aggregate(
        self, entries: tuple[tuple[str, tree.Value], ...], scope: str, message: MessageProto | None
    ) -> tree.Aggregate:
        gathered: dict[str, list[tree.Value]] = {}
        fields: dict[str, FieldProto | None] = {}
        for written, value in entries:
            key, field = written, None
            if key.startswith("["):
                full = self._view.resolve(key[1:-1], scope, _EXTENSION) if "/" not in key else None
                if full is not None:
                    key, field = f"[{full}]", self._view.extension(full)
            elif message is not None:
                field = next((one for one in message.field if one.name == key), None)
            fields[key] = field
            gathered.setdefault(key, []).extend(value.items if isinstance(value, tree.Sequence) else [value])
        result: list[tuple[str, tree.Value]] = []
        for key in sorted(gathered):
            values = gathered[key]
            inner = self._message_of(fields[key])
            literals = [one for one in values if isinstance(one, tree.Aggregate)]
            if fields[key] is not None and not _repeated(fields[key]) and 1 < len(literals) == len(values):
                values = [tree.Aggregate(tuple(entry for one in literals for entry in one.entries))]
            values = [self._value(one, scope, inner) for one in values]
            if values:
                result.append((key, values[0] if len(values) == 1 else tree.Sequence(tuple(values))))
        return tree.Aggregate(tuple(result))

    def _message_of(self, field: FieldProto | None) -> MessageProto | None:
        return self._view.message(field.type_name[1:]) if field is not None and field.type_name else None


def _repeated(field: FieldProto | None) -> bool:
    return field is None or field.label == FieldProto.LABEL_REPEATED


def _number(field: tree.Field) -> int:
    return field.number


def _sorted_constants(constants: list[tree.EnumConstant]) -> tuple[tree.EnumConstant, ...]:
    """Sort constants by number without a change of meaning.

    - The first constant is the default and, in proto3, zero. It stays first, also before negative constants.
    - Of constants with the same number, the first is the name in JSON. They keep their order.

    Confluent's registry sorts all constants by number and name.
    """
    return (*constants[:1], *sorted(constants[1:], key=lambda one: one.number))


def _spelled(field: FieldProto) -> str:
    return field.type_name or FieldProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _reserved(statements: Iterable[tree.Reserved]) -> tuple[tree.Reserved, ...]:
    ranges = [value for one in statements for value in one.values if isinstance(value, tree.Range)]
    names = [(value, one.quoted) for one in statements for value in one.values if isinstance(value, str)]
    single = [replace(one, single=one.start == one.end) for one in ranges]
    result = [tree.Reserved((one,)) for one in sorted(single, key=lambda one: (one.start, one.end))]
    return (*result, *(tree.Reserved((name,), quoted) for name, quoted in sorted(names)))


def _with_single(statements: Iterable[tree.Extensions]) -> Iterable[tree.Extensions]:
    for one in statements:
        numbers = one.ranges[0]
        yield replace(one, ranges=(replace(numbers, single=numbers.start == numbers.end),), line=0)


def _plain_number(text: str) -> str:
    """The unique text of a number, with all digits. Confluent's registry keeps three decimal places."""
    whole = number_of(text)
    if whole is not None:
        return str(whole)
    try:
        exact = Decimal(text.rstrip("fF")).normalize(Context(prec=DIGITS_MAX))
    except ArithmeticError:
        return text
    if not exact:
        return "0"
    return f"{exact:f}" if abs(exact.adjusted()) < 40 else str(exact)
