"""A message and advice for each kind of difference."""

from typing import Final

from headgate.registry.compatibility.json_schema.kinds import Difference

_ADDED: Final = "The reader's schema demands {keyword} where the writer's does not"
_TIGHTER: Final = "The reader's schema allows less by {keyword} than the writer's"
_DROP: Final = "Remove {keyword}, or set it so that everything the writer's schema allows still passes."
_LOOSEN: Final = "Set {keyword} back to the writer's value or looser."

_SPECIAL: dict[Difference, tuple[str, str]] = {
    Difference.SCHEMA_ADDED: (
        "The reader's schema restricts the items, the writer's does not",
        "Leave the items unrestricted, or give the new kind of array a property of its own.",
    ),
    Difference.TYPE_NARROWED: (
        "The reader's schema takes whole numbers only, the writer's takes any number",
        "Keep the type number.",
    ),
    Difference.TYPE_CHANGED: (
        "The two schemas describe different types of values",
        "Keep the old type, or accept both with anyOf or a list of types.",
    ),
    Difference.PATTERN_CHANGED: (
        "The pattern differs; whether the new one takes every old text cannot be told",
        "Keep the old pattern, or remove it.",
    ),
    Difference.MULTIPLE_OF_EXPANDED: (
        "The reader's schema takes only a part of the multiples the writer's allows",
        "Keep the old multipleOf, or use a divisor of it.",
    ),
    Difference.MULTIPLE_OF_CHANGED: (
        "The reader's multipleOf does not divide the writer's",
        "Keep the old multipleOf, or use a divisor of it.",
    ),
    Difference.REQUIRED_ATTRIBUTE_ADDED: (
        "The property is required by the reader's schema and optional in the writer's",
        "Leave it optional, or give it a default.",
    ),
    Difference.REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL: (
        "The reader's schema requires a property that the writer's does not know",
        "Make it optional or give it a default, and close the model with additionalProperties before adding to it.",
    ),
    Difference.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL: (
        "The writer's schema allows any value under the name of this new property",
        "Close the model with additionalProperties: false before adding to it, or use the LENIENT policy.",
    ),
    Difference.OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL: (
        "The writer's schema allows any value under the name of this new property",
        "Close the model with additionalProperties: false before adding to it, or use the LENIENT policy.",
    ),
    Difference.REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL: (
        "The reader's schema requires a property that no writer sets",
        "Make it optional, or give it a default.",
    ),
    Difference.PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL: (
        "The reader's schema allows no other properties and lacks one that writers set",
        "Keep the property, or allow additional properties.",
    ),
    Difference.PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: (
        "The removed property is not covered by what the reader's schema says of additional properties",
        "Keep the property, or widen additionalProperties or patternProperties to take its values.",
    ),
    Difference.PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: (
        "The new property does not take what the writer's schema allows under its name as an additional property",
        "Widen the property's schema to take those values, or choose another name.",
    ),
    Difference.ADDITIONAL_PROPERTIES_REMOVED: (
        "The reader's schema allows no additional properties, the writer's does",
        "Keep allowing additional properties.",
    ),
    Difference.ADDITIONAL_PROPERTIES_NARROWED: (
        "The reader's schema restricts additional properties, the writer's does not",
        "Keep additional properties unrestricted.",
    ),
    Difference.UNEVALUATED_PROPERTIES_REMOVED: (
        "The reader's schema allows no unevaluated properties, the writer's does",
        "Keep allowing unevaluated properties.",
    ),
    Difference.UNEVALUATED_PROPERTIES_NARROWED: (
        "The reader's schema restricts unevaluated properties, the writer's does not",
        "Keep unevaluated properties unrestricted.",
    ),
    Difference.DEPENDENCY_ARRAY_EXTENDED: (
        "The reader's schema demands more properties beside this one than the writer's",
        "Demand no more properties than before.",
    ),
    Difference.DEPENDENCY_ARRAY_CHANGED: (
        "The reader's schema demands other properties beside this one than the writer's",
        "Demand only properties that were demanded before.",
    ),
    Difference.RESERVED_PROPERTY_REMOVED: (
        "The property is reserved by the earlier version and no longer by this one",
        "Keep the name in the metadata property confluent:reserved.",
    ),
    Difference.RESERVED_PROPERTY_CONFLICTS_WITH_PROPERTY: (
        "The schema uses a property name that its metadata reserves",
        "Choose another name for the property.",
    ),
    Difference.ADDITIONAL_ITEMS_REMOVED: (
        "The reader's schema allows no additional items, the writer's does",
        "Keep allowing additional items.",
    ),
    Difference.ADDITIONAL_ITEMS_NARROWED: (
        "The reader's schema restricts additional items, the writer's does not",
        "Keep additional items unrestricted.",
    ),
    Difference.UNEVALUATED_ITEMS_REMOVED: (
        "The reader's schema allows no unevaluated items, the writer's does",
        "Keep allowing unevaluated items.",
    ),
    Difference.UNEVALUATED_ITEMS_NARROWED: (
        "The reader's schema restricts unevaluated items, the writer's does not",
        "Keep unevaluated items unrestricted.",
    ),
    Difference.ITEM_ADDED_TO_OPEN_CONTENT_MODEL: (
        "The writer's schema allows any value at the place of this new item",
        "Close the tuple before adding to it, or accept any value there.",
    ),
    Difference.ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL: (
        "The reader's schema allows no further items and lacks one that writers set",
        "Keep the item, or allow additional items.",
    ),
    Difference.ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: (
        "The removed item is not covered by what the reader's schema says of additional items",
        "Keep the item, or widen the schema of additional items.",
    ),
    Difference.ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: (
        "The new item does not take what the writer's schema allows there as an additional item",
        "Widen the item's schema to take those values.",
    ),
    Difference.ENUM_ARRAY_NARROWED: (
        "The reader's schema lacks values that the writer's allows",
        "Keep all the old values; new ones may be added.",
    ),
    Difference.ENUM_ARRAY_CHANGED: (
        "The reader's schema allows other values than the writer's",
        "Keep all the old values; new ones may be added.",
    ),
    Difference.COMBINED_TYPE_CHANGED: (
        "The kind of combination changed in a way that takes less",
        "Keep the kind of combination, or change it to anyOf.",
    ),
    Difference.PRODUCT_TYPE_EXTENDED: (
        "The reader's allOf has more members, each of which has to hold, than the writer's",
        "Remove the new members of allOf.",
    ),
    Difference.SUM_TYPE_NARROWED: (
        "The reader's schema offers fewer alternatives than the writer's",
        "Keep all the old alternatives; new ones may be added.",
    ),
    Difference.COMBINED_TYPE_SUBSCHEMAS_CHANGED: (
        "Not every member of the combination has a counterpart that reads it",
        "Keep the old members readable, each by a member of its own.",
    ),
    Difference.NOT_TYPE_EXTENDED: (
        "The reader's schema forbids more under not than the writer's",
        "Forbid no more than before.",
    ),
    Difference.COMPARISON_TOO_COSTLY: (
        "The schemas are too entangled to be compared within the limits, so nothing can be promised",
        "Give the members of large combinations distinct types, or split the schema.",
    ),
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
