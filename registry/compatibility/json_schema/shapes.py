"""Classifies subschemas for the comparison: string, object, combination and so on.

A schema with several aspects (a type and an enum, two combinations, keywords of two types) is a combination of them.
This is the model of Confluent's registry, which compares keywords only between schemas of the same shape. `true` and
`{}` have the same shape. A reference has the shape of its target.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from headgate.registry.formats.json_schema.document import same_key
from headgate.registry.formats.json_schema.drafts import Draft
from headgate.registry.formats.json_schema.subschema import Subschema


class Kind(Enum):
    EMPTY = "anything"
    FALSE = "nothing"
    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    NULL = "null"
    ARRAY = "array"
    OBJECT = "object"
    ENUM = "enum"
    CONST = "const"
    NOT = "not"
    CONDITIONAL = "if/then/else"
    COMBINED = "combination"


class Criterion(Enum):
    ALL = "allOf"
    ANY = "anyOf"
    ONE = "oneOf"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shape:
    """The shape of a subschema. Compares by identity: each subschema has one shape per comparison."""

    kind: Kind
    source: Subschema
    criterion: Criterion = Criterion.ALL
    members: "tuple[Subschema | Shape, ...]" = field(default=())
    """The members of a combination."""
    integer: bool = False

    def get(self, keyword: str) -> Any:
        return self.source.value.get(keyword)


_TYPES: Final = {
    "string": Kind.STRING,
    "number": Kind.NUMBER,
    "integer": Kind.NUMBER,
    "boolean": Kind.BOOLEAN,
    "null": Kind.NULL,
    "array": Kind.ARRAY,
    "object": Kind.OBJECT,
}

_STRING: Final = frozenset({"minLength", "maxLength", "pattern"})
_NUMBER: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_ARRAY: Final = frozenset({"items", "additionalItems", "minItems", "maxItems", "uniqueItems"})
_OBJECT: Final = frozenset(
    {"properties", "required", "minProperties", "maxProperties", "patternProperties", "additionalProperties"}
)
_CONDITIONAL: Final = frozenset({"if", "then", "else"})

# From 2019-09, Confluent's registry uses another library, which ignores these keywords.
_SAYING_NOTHING_WHEN_EMPTY: Final = ("properties", "patternProperties")


def _keywords(draft: Draft) -> dict[Kind, frozenset[str]]:
    """The keywords that determine the type of a schema without `type`."""
    strings, arrays, objects = set(_STRING), set(_ARRAY), set(_OBJECT)
    conditionals: frozenset[str] = frozenset()
    if draft <= Draft.DRAFT_7:
        strings.add("format")  # an annotation since 2019-09
        objects.add("dependencies")  # split into two keywords in 2019-09
    if draft >= Draft.DRAFT_6:
        arrays.add("contains")
        objects.add("propertyNames")
    if draft >= Draft.DRAFT_7:
        conditionals = _CONDITIONAL
    if draft >= Draft.DRAFT_2019:
        arrays |= {"unevaluatedItems"}
        objects |= {"dependentRequired", "dependentSchemas", "unevaluatedProperties"}
    if draft is Draft.DRAFT_2020:
        arrays = arrays - {"additionalItems"} | {"prefixItems"}
    return {
        Kind.ARRAY: frozenset(arrays),
        Kind.OBJECT: frozenset(objects),
        Kind.NUMBER: _NUMBER,
        Kind.STRING: frozenset(strings),
        Kind.CONDITIONAL: conditionals,
    }


_KEYWORDS: Final = {draft: _keywords(draft) for draft in Draft}


class Shapes:
    """The shapes of one comparison, created on demand."""

    def __init__(self) -> None:
        self._known: dict[Subschema | Shape, Shape] = {}
        self._keys: dict[Subschema | Shape, str] = {}
        self._choices: dict[Shape, frozenset[str]] = {}

    def of(self, place: "Subschema | Shape") -> Shape:
        if isinstance(place, Shape):
            return place
        followed = []
        node = place
        while (shape := self._known.get(node)) is None:
            followed.append(node)
            parts = _parts(node)
            if len(parts) == 1 and isinstance(parts[0], Subschema):
                node = parts[0]
            else:
                shape = _put_together(node, parts)
                break
        for passed in followed:
            self._known[passed] = shape
        return shape

    def choices(self, shape: Shape) -> frozenset[str]:
        """The values of an enum, or the constant, in a form in which equal values compare equal."""
        if shape not in self._choices:
            values = [shape.get("const")] if shape.kind is Kind.CONST else shape.get("enum")
            self._choices[shape] = frozenset(map(same_key, values))
        return self._choices[shape]

    def key(self, member: "Subschema | Shape") -> str:
        """A key that is equal for members with the same content, so that duplicates count once."""
        known = self._keys.get(member)
        if known is None:
            if isinstance(member, Shape):
                known = f"{member.kind.name} {member.integer} {member.criterion.name} {id(member.source)}"
            elif member.targets:
                known = f"{same_key(member.value)} {' '.join(str(id(target)) for target in member.targets)}"
            else:
                known = same_key(member.value)
            self._keys[member] = known
        return known


def _parts(node: Subschema) -> "list[Subschema | Shape]":
    """All aspects of a subschema, one part per kind. References are replaced by their targets."""
    value = node.value
    if isinstance(value, bool):
        return [] if value else [Shape(Kind.FALSE, node)]
    if node.is_reference:
        return [node.targets[0]]
    draft = node.draft
    empties = _SAYING_NOTHING_WHEN_EMPTY if draft >= Draft.DRAFT_2019 else ()
    parts: list[Subschema | Shape] = list(node.targets)
    if "enum" in value:
        parts.append(Shape(Kind.ENUM, node))
    parts.extend(
        Shape(Kind.COMBINED, node, criterion, tuple(node.many(criterion.value)))
        for criterion in Criterion
        if criterion.value in value
    )
    if "not" in value:
        parts.append(Shape(Kind.NOT, node))
    if "const" in value and draft is not Draft.DRAFT_4:
        parts.append(Shape(Kind.CONST, node))
    named: set[Kind] = set()
    types = value.get("type")
    if isinstance(types, str):
        named.add(_TYPES[types])
        parts.append(_typed(types, node))
    elif isinstance(types, list):
        named.update(_TYPES[name] for name in types)
        members = tuple(_typed(name, node) for name in types)
        parts.append(Shape(Kind.COMBINED, node, Criterion.ANY, members))
    said = {name for name, content in value.items() if content or name not in empties}
    parts.extend(
        Shape(kind, node)
        for kind, keywords in _KEYWORDS[draft].items()
        if kind not in named and not keywords.isdisjoint(said)
    )
    return parts


def _put_together(node: Subschema, parts: "list[Subschema | Shape]") -> Shape:
    if not parts:
        return Shape(Kind.EMPTY, node)
    if len(parts) == 1 and isinstance(parts[0], Shape):
        return parts[0]
    return Shape(Kind.COMBINED, node, Criterion.ALL, tuple(parts))


def _typed(name: str, node: Subschema) -> Shape:
    return Shape(_TYPES[name], node, integer=name == "integer")


def limits(shape: Shape, name: str) -> tuple[Any, Any]:
    """`maximum` and `exclusiveMaximum` (or the minimums) as numbers. draft-04 uses a flag for the second."""
    inclusive = shape.get(name)
    exclusive = shape.get(f"exclusive{name.capitalize()}")
    if shape.source.draft is Draft.DRAFT_4:
        exclusive = inclusive if exclusive is True else None
    return inclusive, exclusive
