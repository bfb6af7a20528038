"""Prints a `syntax_tree.File` in the format of Confluent's registry, so that canonical texts are equal.

Comments are removed. The order of kinds is fixed: reserved, options, fields, oneofs, groups, extension ranges,
extensions, messages, enums. The order within each kind does not change. An indented blank line separates kinds.
"""

from collections.abc import Iterable
from typing import Final

from headgate.registry.formats.protobuf.syntax_tree import (
    TAG_MAX,
    Aggregate,
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Message,
    Method,
    OneOf,
    Option,
    Range,
    Reserved,
    Sequence,
    Service,
    Text,
    Value,
)

_LETTER_ESCAPES: Final = {7: "\\a", 8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v"}
_ESCAPES: Final = {
    # Octal: control characters without a letter, and bytes that are not UTF-8 (surrogates after decoding).
    **{code: f"\\{code:03o}" for code in [*range(32), 127]},
    **{0xDC00 + byte: f"\\{byte:03o}" for byte in range(128, 256)},
    **{ord(sign): "\\" + sign for sign in "\\'\""},
    **_LETTER_ESCAPES,
}


def print_file(file: File) -> str:
    out: list[str] = []
    if file.syntax is not None:
        out.append(f'syntax = "{file.syntax}";')
    elif file.edition is not None:
        out.append(f'edition = "{file.edition}";')
    if file.package:
        out.append(f"package {file.package};")
    if file.imports:
        out.append("")
        for modifier in ("", "public", "weak", "option"):
            spelled = f"import {modifier} " if modifier else "import "
            out += [f"{spelled}{quote(one.path.encode())};" for one in file.imports if one.modifier == modifier]
    if file.options:
        out.append("")
        _options(out, file.options, "")
    messages = [one for one in file.body if isinstance(one, Message)]
    enums = [one for one in file.body if isinstance(one, Enum)]
    if messages or enums:
        out.append("")
        for message in messages:
            _message(out, message, "")
        for enum in enums:
            _enum(out, enum, "")
    extends = [one for one in file.body if isinstance(one, Extend)]
    if extends:
        out.append("")
        for extend in extends:
            _extend(out, extend, "")
    services = [one for one in file.body if isinstance(one, Service)]
    if services:
        out.append("")
        for service in services:
            _service(out, service)
    return "\n".join(out) + "\n" if out else ""


def print_option(option: Option) -> str:
    return f"{option.spelled} = {print_value(option.value)}"


def print_value(value: Value) -> str:
    match value:
        case Text(data):
            return quote(data)
        case Aggregate(entries):
            last = len(entries) - 1
            lines = [
                _indented(f"{key}: {print_value(item)}{',' if index < last else ''}")
                for index, (key, item) in enumerate(entries)
            ]
            return "\n".join(["{", *lines, "}"])
        case Sequence(items):
            last = len(items) - 1
            lines = [_indented(f"{print_value(item)}{',' if index < last else ''}") for index, item in enumerate(items)]
            return "\n".join(["[", *lines, "]"])
        case _:
            return value.text


def quote(data: bytes) -> str:
    return '"' + data.decode("utf-8", "surrogateescape").translate(_ESCAPES) + '"'


def _indented(text: str) -> str:
    return "  " + text.replace("\n", "\n  ")


def _options(out: list[str], options: Iterable[Option], indent: str) -> None:
    for option in options:
        _append(out, f"option {print_option(option)};", indent)


def _append(out: list[str], text: str, indent: str) -> None:
    out.append(indent + text.replace("\n", "\n" + indent) if indent else text)


def _bracketed(options: tuple[Option, ...]) -> str:
    if not options:
        return ""
    if len(options) == 1:
        return f" [{print_option(options[0])}]"
    return " [\n" + ",\n".join(_indented(print_option(option)) for option in options) + "\n]"


class _Sections:
    """A block. The header line stays open until the first section, so that an empty block is `message M {}`."""

    def __init__(self, out: list[str], header: str, indent: str) -> None:
        self._out = out
        self._indent = indent
        self._empty = True
        out.append(f"{indent}{header} {{")

    def begin(self) -> None:
        if not self._empty:
            self._out.append(self._indent)
        self._empty = False

    def end(self) -> None:
        if self._empty:
            self._out[-1] += "}"
        else:
            self._out.append(self._indent + "}")


def _message(out: list[str], message: Message, indent: str) -> None:
    visibility = message.visibility + " " if message.visibility else ""
    _message_block(out, f"{visibility}message {message.name}", message, indent)


def _message_block(out: list[str], header: str, message: Message, indent: str) -> None:
    sections = _Sections(out, header, indent)
    inner = indent + "  "
    if message.reserved:
        sections.begin()
        out += [inner + _reserved(one) for one in message.reserved]
    if message.options:
        sections.begin()
        _options(out, message.options, inner)
    fields = [one for one in message.body if isinstance(one, Field)]
    plain = [one for one in fields if one.group is None]
    if plain:
        sections.begin()
        for field in plain:
            _field(out, field, inner)
    oneofs = [one for one in message.body if isinstance(one, OneOf)]
    if oneofs:
        sections.begin()
        for oneof in oneofs:
            _oneof(out, oneof, inner)
    _groups(out, fields, sections, inner)
    if message.extensions:
        sections.begin()
        for extensions in message.extensions:
            _append(out, _extensions(extensions), inner)
    extends = [one for one in message.body if isinstance(one, Extend)]
    if extends:
        sections.begin()
        for extend in extends:
            _extend(out, extend, inner)
    messages = [one for one in message.body if isinstance(one, Message)]
    enums = [one for one in message.body if isinstance(one, Enum)]
    if messages or enums:
        sections.begin()
        for nested in messages:
            _message(out, nested, inner)
        for enum in enums:
            _enum(out, enum, inner)
    sections.end()


def _groups(out: list[str], fields: Iterable[Field], sections: _Sections, indent: str) -> None:
    groups = [field for field in fields if field.group is not None]
    if groups:
        sections.begin()
    for field in groups:
        assert field.group is not None
        label = field.label + " " if field.label else ""
        options = _bracketed(field.options).replace("\n", "\n" + indent)
        _message_block(out, f"{label}group {field.group.name} = {field.number}{options}", field.group, indent)


def _field(out: list[str], field: Field, indent: str) -> None:
    label = field.label + " " if field.label else ""
    type_name = field.type if field.key_type is None else f"map<{field.key_type}, {field.type}>"
    options = _bracketed(field.options)
    _append(out, f"{label}{type_name} {field.name} = {field.number}{options};", indent)


def _oneof(out: list[str], oneof: OneOf, indent: str) -> None:
    sections = _Sections(out, f"oneof {oneof.name}", indent)
    inner = indent + "  "
    if oneof.options:
        sections.begin()
        _options(out, oneof.options, inner)
    plain = [field for field in oneof.fields if field.group is None]
    if plain:
        sections.begin()
        for field in plain:
            _field(out, field, inner)
    _groups(out, oneof.fields, sections, inner)
    sections.end()


def _extend(out: list[str], extend: Extend, indent: str) -> None:
    sections = _Sections(out, f"extend {extend.extendee}", indent)
    plain = [field for field in extend.fields if field.group is None]
    if plain:
        sections.begin()
        for field in plain:
            _field(out, field, indent + "  ")
    _groups(out, extend.fields, sections, indent + "  ")
    sections.end()


def _enum(out: list[str], enum: Enum, indent: str) -> None:
    visibility = enum.visibility + " " if enum.visibility else ""
    sections = _Sections(out, f"{visibility}enum {enum.name}", indent)
    inner = indent + "  "
    if enum.reserved or enum.options or enum.constants:
        sections.begin()
    out += [inner + _reserved(one, (1 << 31) - 1) for one in enum.reserved]
    _options(out, enum.options, inner)
    for constant in enum.constants:
        _append(out, f"{constant.name} = {constant.number}{_bracketed(constant.options)};", inner)
    sections.end()


def _service(out: list[str], service: Service) -> None:
    sections = _Sections(out, f"service {service.name}", "")
    if service.options:
        sections.begin()
        _options(out, service.options, "  ")
    if service.methods:
        sections.begin()
        for method in service.methods:
            _method(out, method)
    sections.end()


def _method(out: list[str], method: Method) -> None:
    taken = ("stream " if method.input_streaming else "") + method.input_type
    given = ("stream " if method.output_streaming else "") + method.output_type
    header = f"  rpc {method.name} ({taken}) returns ({given})"
    if method.options:
        out.append(header + " {")
        _options(out, method.options, "    ")
        out.append("  };")
    else:
        out.append(header + ";")


def _reserved(reserved: Reserved, highest: int = TAG_MAX) -> str:
    values = [
        _range(value, highest)
        if isinstance(value, Range)
        else quote(value.encode("utf-8", "replace"))
        if reserved.quoted
        else value
        for value in reserved.values
    ]
    return f"reserved {', '.join(values)};"


def _extensions(extensions: Extensions) -> str:
    ranges = ", ".join(_range(one, TAG_MAX) for one in extensions.ranges)
    return f"extensions {ranges}{_bracketed(extensions.options)};"


def _range(numbers: Range, highest: int) -> str:
    if numbers.single:
        return str(numbers.start)
    return f"{numbers.start} to {'max' if numbers.end >= highest else numbers.end}"
