"""Removes extensions and custom options (`format=ignore_extensions` of Confluent's API).

Confluent's options stay, because clients read tags and rules from them.
"""

from dataclasses import replace

from headgate.registry.formats.protobuf import syntax_tree as tree


def without_extensions(file: tree.File) -> tree.File:
    body: list[tree.Message | tree.Enum | tree.Extend | tree.Service] = []
    for one in file.body:
        if isinstance(one, tree.Message):
            body.append(_message(one))
        elif isinstance(one, tree.Enum):
            body.append(_enum(one))
        elif isinstance(one, tree.Service):
            methods = tuple(replace(method, options=_kept(method.options)) for method in one.methods)
            body.append(replace(one, methods=methods, options=_kept(one.options)))
    return replace(file, options=_kept(file.options), body=tuple(body))


def _message(message: tree.Message) -> tree.Message:
    body: list[tree.Field | tree.OneOf | tree.Message | tree.Enum | tree.Extend] = []
    for one in message.body:
        if isinstance(one, tree.Field):
            body.append(_field(one))
        elif isinstance(one, tree.OneOf):
            body.append(replace(one, fields=tuple(map(_field, one.fields)), options=_kept(one.options)))
        elif isinstance(one, tree.Message):
            body.append(_message(one))
        elif isinstance(one, tree.Enum):
            body.append(_enum(one))
    return replace(message, body=tuple(body), options=_kept(message.options), extensions=())


def _field(field: tree.Field) -> tree.Field:
    group = _message(field.group) if field.group is not None else None
    return replace(field, options=_kept(field.options), group=group)


def _enum(enum: tree.Enum) -> tree.Enum:
    constants = tuple(replace(one, options=_kept(one.options)) for one in enum.constants)
    return replace(enum, constants=constants, options=_kept(enum.options))


def _kept(options: tuple[tree.Option, ...]) -> tuple[tree.Option, ...]:
    return tuple(
        option
        for option in options
        if not option.name[0].extension or option.name[0].text.lstrip(".").startswith("confluent.")
    )
