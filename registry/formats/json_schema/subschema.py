"""One `Subschema` per schema position in a document.

`library` builds the objects, and nothing changes them afterwards, so that threads can share them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.registry.formats.json_schema.drafts import Draft

Children = dict[str, "list[Subschema] | dict[str, Subschema] | Subschema"]

# Keywords whose subschemas apply to the same value as the enclosing schema, not to a part of it.
IN_PLACE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependencies", "dependentSchemas")


@dataclass(slots=True, eq=False, repr=False)
class Subschema:
    value: Any
    """The parsed object or boolean."""
    draft: Draft
    base: str
    """The base URI for references."""
    document: str
    """The name of the registry reference that contains it; "" for the schema itself."""
    path: str
    """The JSON pointer inside the document."""
    children: Children = field(default_factory=dict)
    """Children by keyword, in the structure of the keyword."""
    targets: list["Subschema"] = field(default_factory=list)
    """The target of `$ref`, and of `$dynamicRef` or `$recursiveRef` as far as it is known without a value."""

    standard_references: dict[str, str] | None = None
    """By keyword: references that only this library resolves, rewritten for other validators."""

    def place(self, *keys: str) -> str:
        """The position of this schema or of a part of it, for error messages."""
        pointer = self.path + "".join(f"/{escaped(key)}" for key in keys)
        return f"{self.document}#{pointer}" if self.document else pointer or "/"

    @property
    def is_reference(self) -> bool:
        """Whether it consists of a reference only."""
        return bool(self.targets) and self.draft.reference_stands_alone

    def all_children(self) -> Iterator["Subschema"]:
        for held in self.children.values():
            yield from _each(held)

    def in_place(self) -> Iterator["Subschema"]:
        yield from self.targets
        if not self.is_reference:
            for keyword in IN_PLACE:
                if keyword in self.children:
                    yield from _each(self.children[keyword])

    def one(self, keyword: str) -> "Subschema | None":
        held = self.children.get(keyword)
        return held if isinstance(held, Subschema) else None

    def many(self, keyword: str) -> "list[Subschema]":
        held = self.children.get(keyword)
        return held if isinstance(held, list) else []

    def named(self, keyword: str) -> "dict[str, Subschema]":
        held = self.children.get(keyword)
        return held if isinstance(held, dict) else {}


def escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def pointer_keys(pointer: str) -> list[str]:
    return [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]


def _each(held: "list[Subschema] | dict[str, Subschema] | Subschema") -> Iterator[Subschema]:
    if isinstance(held, Subschema):
        yield held
    elif isinstance(held, dict):
        yield from held.values()
    else:
        yield from held
