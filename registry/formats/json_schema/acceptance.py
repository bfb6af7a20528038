"""A second, compiled opinion that can only say yes: `jsonschema-rs`, a hundred times faster than `jsonschema`.

Most values are valid, and for those the question is answered here. A no is not taken from it: `validation` then asks
`jsonschema`, which has the last word and the better explanation. A test holds the two against each other.

The compiled code recurses on the machine's stack, where too deep means the end of the process. So schemas and values
are measured first, and those beyond the bounds are left to Python.
"""

from collections.abc import Callable
from typing import Any, Final

import jsonschema_rs

from headgate.registry.formats.json_schema.drafts import Draft
from headgate.registry.formats.json_schema.subschema import Subschema

# Together: some thousand frames of machine stack, where a thread of 1 MB holds more than ten times as many.
SUBSCHEMAS_MAX: Final = 1_000
IN_PLACE_LEVELS_MAX: Final = 16
VALUE_LEVELS_MAX: Final = 64

_WHOLE_MAX: Final = 2**53

_CLASSES: dict[Draft, Callable[..., Any]] = {
    Draft.DRAFT_4: jsonschema_rs.Draft4Validator,
    Draft.DRAFT_6: jsonschema_rs.Draft6Validator,
    Draft.DRAFT_7: jsonschema_rs.Draft7Validator,
    Draft.DRAFT_2019: jsonschema_rs.Draft201909Validator,
    Draft.DRAFT_2020: jsonschema_rs.Draft202012Validator,
}


def compiled(root: Subschema, value: Any) -> Callable[[Any], bool] | None:
    """A function that is True for values that surely are valid; None when the schema is not made for it.

    `value` is the document of `root` with numbers as Python's own JSON reader makes them.
    """
    if not _is_within_bounds(root):
        return None
    try:
        validator = _CLASSES[root.draft](value, validate_formats=False, offline=True)
    except Exception:  # whatever it does not like about the schema, `jsonschema` is there
        return None
    is_valid: Callable[[Any], bool] = validator.is_valid

    def accepts(instance: Any) -> bool:
        try:
            return is_plain(instance) and is_valid(instance)
        except Exception:  # a type or a number that it does not know
            return False

    return accepts


def is_plain(value: Any) -> bool:
    """Not too deep, and with whole numbers that fit a machine's: longer ones are rounded by the compiled code."""
    level = [value]
    for _ in range(VALUE_LEVELS_MAX + 1):
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner.extend(each.values())
            elif isinstance(each, (list, tuple)):
                inner.extend(each)
            elif isinstance(each, int) and not -_WHOLE_MAX <= each <= _WHOLE_MAX:
                return False
        if not inner:
            return True
        level = inner
    return False


def _is_within_bounds(root: Subschema) -> bool:
    """Small, in one document and of one draft, so that both libraries understand it the same way."""
    reached = {root}
    queue = [root]
    for node in queue:
        if node.document or node.draft is not root.draft or len(queue) > SUBSCHEMAS_MAX:
            return False
        for other in (*node.all_children(), *node.targets):
            if other not in reached:
                reached.add(other)
                queue.append(other)
    # Chains of schemas that judge the same value: no longer than the bound when they are used up within as many rounds.
    following = {node: list(node.in_place()) for node in reached}
    for _ in range(IN_PLACE_LEVELS_MAX):
        following = {node: others for node, others in following.items() if any(other in following for other in others)}
        if not following:
            return True
    return False
