"""A message and advice for each kind of difference."""

from typing import Final

from headgate.registry.compatibility.json_schema.kinds import Difference

_ADDED: Final = "The reader schema requires {keyword}, the writer schema does not"
_TIGHTER: Final = "The reader schema restricts {keyword} more than the writer schema"
_DROP: Final = "Remove {keyword}, or set it so that it accepts everything that the writer schema allows."
_LOOSEN: Final = "Set {keyword} to the writer's value or a less strict one."


def _of_rest(rest: str) -> dict[Difference, tuple[str, str]]:
    """The explanations for the keyword of `rest`, for example additionalItems."""
    name = rest.replace(" ", "_").upper()
    return {
        Difference[f"{name}_REMOVED"]: (
            f"The reader schema allows no {rest}; the writer schema does",
            f"Keep allowing {rest}.",
        ),
        Difference[f"{name}_NARROWED"]: (
            f"The reader schema restricts {rest}; the writer schema does not",
            f"Keep {rest} unrestricted.",
        ),
    }


_SPECIAL: dict[Difference, tuple[str, str]] = {
    Difference.SCHEMA_ADDED: (
        "The reader schema restricts the items; the writer schema does not",
        "Leave the items unrestricted, or use a separate property for the new array.",
    ),
    Difference.TYPE_NARROWED: (
        "The reader schema accepts integers only, the writer schema accepts any number",
        "Keep the type number.",
    ),
    Difference.TYPE_CHANGED: (
        "The two schemas describe different types of values",
        "Keep the old type, or accept both with anyOf or a list of types.",
    ),
    Difference.PATTERN_CHANGED: (
        "The pattern differs, and it cannot be determined whether the new one accepts all old values",
        "Keep the old pattern, or remove it.",
    ),
    Difference.MULTIPLE_OF_EXPANDED: (
        "The reader schema accepts only some of the multiples that the writer schema allows",
        "Keep the old multipleOf, or use a divisor of it.",
    ),
    Difference.MULTIPLE_OF_CHANGED: (
        "The reader's multipleOf does not divide the writer's",
        "Keep the old multipleOf, or use a divisor of it.",
    ),
    Difference.REQUIRED_ATTRIBUTE_ADDED: (
        "The property is required by the reader schema and optional in the writer schema",
        "Leave it optional, or give it a default.",
    ),
    Difference.REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL: (
        "The reader schema requires a property that the writer schema does not have",
        "Make it optional or give it a default, and close the content model with additionalProperties first.",
    ),
    Difference.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL: (
        "The writer schema allows any value under the name of this new property",
        "Close the content model with additionalProperties: false first, or use the LENIENT policy.",
    ),
    Difference.OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL: (
        "The writer schema allows any value under the name of this new property",
        "Close the content model with additionalProperties: false first, or use the LENIENT policy.",
    ),
    Difference.REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL: (
        "The reader schema requires a property that no writer sets",
        "Make it optional, or give it a default.",
    ),
    Difference.PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL: (
        "The reader schema allows no other properties and does not have a property that writers set",
        "Keep the property, or allow additional properties.",
    ),
    Difference.PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: (
        "The additional properties of the reader schema do not cover the removed property",
        "Keep the property, or extend additionalProperties or patternProperties to accept its values.",
    ),
    Difference.PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: (
        "The new property does not accept all additional properties that the writer schema allows with its name",
        "Extend the schema of the property to accept those values, or choose another name.",
    ),
    Difference.DEPENDENCY_ARRAY_EXTENDED: (
        "The reader schema requires more properties with this one than the writer schema",
        "Do not require more properties.",
    ),
    Difference.DEPENDENCY_ARRAY_CHANGED: (
        "The reader schema requires other properties with this one than the writer schema",
        "Require only properties that were required before.",
    ),
    Difference.ITEM_ADDED_TO_OPEN_CONTENT_MODEL: (
        "The writer schema allows any value at the position of this new item",
        "Close the tuple first, or accept any value there.",
    ),
    Difference.ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL: (
        "The reader schema allows no further items and does not have an item that writers set",
        "Keep the item, or allow additional items.",
    ),
    Difference.ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: (
        "The additional items of the reader schema do not cover the removed item",
        "Keep the item, or extend the schema of additional items.",
    ),
    Difference.ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: (
        "The new item does not accept all additional items that the writer schema allows there",
        "Extend the schema of the item to accept those values.",
    ),
    Difference.ENUM_ARRAY_NARROWED: (
        "The reader schema does not have all values that the writer schema allows",
        "Keep all old values. You may add new ones.",
    ),
    Difference.ENUM_ARRAY_CHANGED: (
        "The reader schema allows other values than the writer schema",
        "Keep all old values. You may add new ones.",
    ),
    Difference.COMBINED_TYPE_CHANGED: (
        "The new kind of combination accepts fewer values",
        "Keep the kind of combination, or change it to anyOf.",
    ),
    Difference.PRODUCT_TYPE_EXTENDED: (
        "The allOf of the reader schema has more members than that of the writer schema, and all of them must match",
        "Remove the new members of allOf.",
    ),
    Difference.SUM_TYPE_NARROWED: (
        "The reader schema has fewer alternatives than the writer schema",
        "Keep all old alternatives. You may add new ones.",
    ),
    Difference.COMBINED_TYPE_SUBSCHEMAS_CHANGED: (
        "Some members of the combination have no counterpart that reads them",
        "Keep a separate member that reads each old member.",
    ),
    Difference.NOT_TYPE_EXTENDED: (
        "The reader schema forbids more with not than the writer schema",
        "Do not forbid more.",
    ),
    Difference.COMPARISON_TOO_COSTLY: (
        "The schemas are too complex to be compared within the limits, so compatibility is unknown",
        "Give the members of large combinations distinct types, or split the schema.",
    ),
    **_of_rest("additional properties"),
    **_of_rest("unevaluated properties"),
    **_of_rest("additional items"),
    **_of_rest("unevaluated items"),
}


def explain(kind: Difference, path: str) -> tuple[str, str]:
    """The message and the advice of a difference."""
    special = _SPECIAL.get(kind)
    if special is not None:
        return f"{special[0]}, at {path}.", special[1]
    keyword = path.rsplit("/", maxsplit=1)[-1]
    if kind.name.startswith("DEPENDENCY"):
        keyword = "a dependency"
    if kind.name.endswith("ADDED"):
        return f"{_ADDED.format(keyword=keyword)}, at {path}.", _DROP.format(keyword=keyword)
    return f"{_TIGHTER.format(keyword=keyword)}, at {path}.", _LOOSEN.format(keyword=keyword)
