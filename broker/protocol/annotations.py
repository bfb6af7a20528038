"""What the annotations of kio's entities say about a field."""

import types
import typing

from kio.static.protocol import Entity


def shape_of(hint: object) -> tuple[type[Entity] | None, bool, bool]:
    """(nested entity, is an array, may be null) of a field's annotation."""
    is_optional = False
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        members = [member for member in typing.get_args(hint) if member is not types.NoneType]
        is_optional = len(members) < len(typing.get_args(hint))
        hint = members[0]
    is_array = typing.get_origin(hint) is tuple
    if is_array:
        hint = typing.get_args(hint)[0]
    nested = hint if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__") else None
    return nested, is_array, is_optional
