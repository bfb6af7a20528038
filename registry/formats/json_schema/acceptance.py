"""Fast path for valid values, with `jsonschema-rs`, which is 100 times faster than `jsonschema`.

Only a positive result is used. For a negative result, `validation` runs `jsonschema`, which decides and explains the
errors. A test compares both libraries.

The compiled code recurses on the native stack, where a stack overflow ends the process. Therefore schemas and values
with too much nesting are left to `jsonschema`.
"""

from collections.abc import Callable
from typing import Any, Final

import jsonschema_rs

from headgate.registry.formats.json_schema.drafts import Draft
from headgate.registry.formats.json_schema.subschema import Subschema

# Both limits together use some thousand frames of native stack. A thread with 1 MB has space for ten times as many.
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
    """A function that returns True for values that are certainly valid. None if the schema is not suitable.

    `value` is the document of `root` with numbers as parsed by the `json` module.
    """
    if not _is_within_bounds(root):
        return None
    try:
        validator = _CLASSES[root.draft](value, validate_formats=False, offline=True)
    except Exception:  # the library rejects the schema, so leave it to `jsonschema`
        return None
    is_valid: Callable[[Any], bool] = validator.is_valid

    def accepts(instance: Any) -> bool:
        try:
            return is_plain(instance) and is_valid(instance)
        except Exception:  # the library does not support this type or number
            return False

    return accepts


def is_plain(value: Any) -> bool:
    """Whether the nesting is limited and all integers fit 64 bits. The compiled code rounds longer integers."""
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
    """Whether the schema is small, in one document and of one draft, so that both libraries agree on its meaning."""
    reached = {root}
    queue = [root]
    for node in queue:
        if node.document or node.draft is not root.draft or len(queue) > SUBSCHEMAS_MAX:
            return False
        for other in (*node.all_children(), *node.targets):
            if other not in reached:
                reached.add(other)
                queue.append(other)
    # Chains of schemas that apply to the same value are at most as long as the number of rounds until none is left.
    following = {node: list(node.in_place()) for node in reached}
    for _ in range(IN_PLACE_LEVELS_MAX):
        following = {node: others for node, others in following.items() if any(other in following for other in others)}
        if not following:
            return True
    return False
