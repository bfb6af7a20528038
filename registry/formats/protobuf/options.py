"""Sets options on descriptors: built-in options, pseudo-options of fields, and custom options.

Built-in options are set directly. Custom options are encoded with the message classes of the files, as in protoc. An
option that no visible file defines becomes an `uninterpreted_option`: Confluent's registry accepts it, and the text
must not change.
"""

import contextlib
from collections.abc import Callable
from typing import Any, Final

from google.protobuf import descriptor_pb2, message_factory, text_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message as ProtoMessage

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf.default_values import default_value, number_of
from headgate.registry.formats.protobuf.descriptors import PendingOptions
from headgate.registry.formats.protobuf.printer import print_value
from headgate.registry.formats.protobuf.symbols import Kind, View
from headgate.registry.formats.protobuf.syntax_tree import (
    Aggregate,
    NamePart,
    Number,
    Option,
    Sequence,
    Text,
    Value,
    Word,
)

_EXTENSION: Final = frozenset({Kind.EXTENSION})
_TEXT_FORMAT_ERRORS: Final = (text_format.ParseError, ValueError, TypeError, KeyError)


def set_built_in(pending: list[PendingOptions], view: View) -> list[PendingOptions]:
    """Set all options that need no custom definition. Returns the other options."""
    custom: list[PendingOptions] = []
    for one in pending:
        left = []
        seen: set[str] = set()
        for option in one.options:
            if option.spelled in seen and not _repeats(one.target, option, view, one.scope):
                raise InvalidSchema(f"The option {option.spelled} is set twice", _place(one, option))
            seen.add(option.spelled)
            if _pseudo(one, option, view):
                continue
            if option.name[0].extension:
                left.append(option)
            elif option.name[0].text not in _fields(one.target):
                _keep_uninterpreted(one.target, option)
            else:
                _built_in(one, option)
        if left:
            custom.append(PendingOptions(one.target, tuple(left), one.scope, one.path))
    return custom


def set_custom(custom: list[PendingOptions], view: View, pool: Callable[[], DescriptorPool]) -> None:
    """Encode custom options with the message classes of `pool`. Calls `pool` only if there are custom options."""
    for one in custom:
        known: list[tuple[Option, str]] = []
        for option in one.options:
            full = view.resolve(option.name[0].text, one.scope, _EXTENSION)
            extension = view.extension(full) if full is not None else None
            if full is None or extension is None:
                _keep_uninterpreted(one.target, option)
            elif extension.extendee != "." + _options(one.target).DESCRIPTOR.full_name:
                raise InvalidSchema(
                    f"The option {option.spelled} extends {extension.extendee[1:]}, which does not fit here",
                    _place(one, option),
                )
            else:
                known.append((option, full))
        if known:
            _encode(one, known, view, pool())


def _encode(one: PendingOptions, known: list[tuple[Option, str]], view: View, pool: DescriptorPool) -> None:
    target = _options(one.target)
    descriptor = pool.FindMessageTypeByName(target.DESCRIPTOR.full_name)
    dynamic = message_factory.GetMessageClass(descriptor)()
    texts = [
        _text_format((NamePart(f"[{full}]", extension=False), *option.name[1:]), option.value, one.scope, view)
        for option, full in known
    ]
    try:
        text_format.Merge("\n".join(texts), dynamic, descriptor_pool=pool)
    except _TEXT_FORMAT_ERRORS:
        # Parse one by one, to find the invalid option.
        for (option, _), text in zip(known, texts, strict=True):
            _merge(text, dynamic, pool, one, option)
        raise
    target.MergeFromString(dynamic.SerializeToString(deterministic=True))


def _merge(text: str, into: ProtoMessage, pool: DescriptorPool | None, one: PendingOptions, option: Option) -> None:
    try:
        text_format.Merge(text, into, descriptor_pool=pool)
    except _TEXT_FORMAT_ERRORS as error:
        reason = str(error).split(" : ", 1)[-1][:200]
        raise InvalidSchema(f"The option {option.spelled} does not fit: {reason}", _place(one, option)) from error


def _built_in(one: PendingOptions, option: Option) -> None:
    target = _options(one.target)
    if len(option.name) == 1:
        field = _fields(one.target)[option.name[0].text]
        if field.name == "uninterpreted_option":
            raise InvalidSchema("uninterpreted_option cannot be set", _place(one, option))
        if isinstance(option.value, Word) and field.type == FieldDescriptor.TYPE_BOOL:
            if option.value.text not in ("true", "false"):
                raise InvalidSchema(f"The option {option.spelled} must be true or false", _place(one, option))
            setattr(target, field.name, option.value.text == "true")
            return
        if isinstance(option.value, Text) and field.type == FieldDescriptor.TYPE_STRING:
            try:
                setattr(target, field.name, option.value.data.decode("utf-8"))
            except UnicodeDecodeError as error:
                raise InvalidSchema(f"The option {option.spelled} is not UTF-8", _place(one, option)) from error
            return
        if field.type == FieldDescriptor.TYPE_STRING or (
            field.type in (FieldDescriptor.TYPE_BOOL, FieldDescriptor.TYPE_ENUM) and not isinstance(option.value, Word)
        ):
            raise InvalidSchema(f"The option {option.spelled} has a value of the wrong type", _place(one, option))
    _merge(_text_format(option.name, option.value, one.scope, None), target, None, one, option)


def _pseudo(one: PendingOptions, option: Option, view: View) -> bool:
    """Set `default` and `json_name`, which are fields of the descriptor, not options."""
    if not isinstance(one.target, descriptor_pb2.FieldDescriptorProto):
        return False
    if option.spelled == "json_name":
        if not isinstance(option.value, Text):
            raise InvalidSchema("json_name must be a string", _place(one, option))
        if one.target.extendee:
            raise InvalidSchema("An extension cannot have a json_name", _place(one, option))
        with contextlib.suppress(UnicodeDecodeError):
            one.target.json_name = option.value.data.decode("utf-8")
            return True
        raise InvalidSchema("json_name is not UTF-8", _place(one, option))
    if option.spelled == "default":
        one.target.default_value = default_value(one.target, option.value, view, one.path)
        return True
    return False


def _text_format(name: tuple[NamePart, ...], value: Value, scope: str, view: View | None) -> str:
    first, *rest = name
    text = _resolved_key(f"[{first.text}]" if first.extension else first.text, scope, view)
    if rest:
        return f"{text} {{ {_text_format(tuple(rest), value, scope, view)} }}"
    return f"{text}{_text_value(value, scope, view)}"


def _text_value(value: Value, scope: str, view: View | None) -> str:
    match value:
        case Text(data):
            return ': "' + "".join(f"\\{byte:03o}" for byte in data) + '"'
        case Word(text):
            return f": {text}"
        case Number(text):
            return f": {text}"
        case Aggregate(entries):
            inside = " ".join(_resolved_key(key, scope, view) + _text_value(item, scope, view) for key, item in entries)
            return f" {{ {inside} }}"
        case Sequence(items):
            return ": [" + ", ".join(_text_value(item, scope, view).lstrip(": ") for item in items) + "]"


def _resolved_key(key: str, scope: str, view: View | None) -> str:
    if view is None or not key.startswith("[") or "/" in key:
        return key
    full = view.resolve(key[1:-1], scope, _EXTENSION)
    return f"[{full}]" if full is not None else key


def _keep_uninterpreted(target: ProtoMessage, option: Option) -> None:
    kept = _options(target).uninterpreted_option.add()
    for part in option.name:
        kept.name.add(name_part=part.text, is_extension=part.extension)
    match option.value:
        case Text(data):
            kept.string_value = data
        case Word(text):
            kept.identifier_value = text
        case Number(text):
            _keep_number(kept, text)
        case other:
            kept.aggregate_value = print_value(other)


def _keep_number(kept: Any, text: str) -> None:
    number = number_of(text)
    if number is not None and 0 <= number < 1 << 64:
        kept.positive_int_value = number
    elif number is not None and -(1 << 63) <= number < 0:
        kept.negative_int_value = number
    else:
        kept.double_value = float(text.rstrip("fF"))


def _repeats(target: ProtoMessage, option: Option, view: View, scope: str) -> bool:
    if option.spelled in ("default", "json_name"):
        return False
    if option.name[0].extension:
        # A nested name may repeat below a message. The text format reports errors there.
        full = view.resolve(option.name[0].text, scope, _EXTENSION)
        extension = view.extension(full) if full is not None else None
        return extension is None or extension.label == 3 or len(option.name) > 1
    field = _fields(target).get(option.name[0].text)
    return field is None or len(option.name) > 1 or bool(field.is_repeated)


def _options(target: ProtoMessage) -> Any:
    return target.options  # type: ignore[attr-defined]  # each descriptor has its own class of options


def _fields(target: ProtoMessage) -> dict[str, FieldDescriptor]:
    descriptor: Descriptor = _options(target).DESCRIPTOR
    return descriptor.fields_by_name  # type: ignore[return-value]  # a mapping of the C library


def _place(one: PendingOptions, option: Option) -> str:
    return f"{one.path}, line {option.line}" if one.path else f"line {option.line}"
