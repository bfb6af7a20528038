"""A schema taken apart: one `Subschema` for each place of a document that holds a schema.

Built by `library` and never changed afterwards, so that threads can share it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.registry.formats.json_schema.drafts import Draft

Children = dict[str, "list[Subschema] | dict[str, Subschema] | Subschema"]

# Keywords whose subschemas judge the same value as the schema they stand in, rather than a part of it.
IN_PLACE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependencies", "dependentSchemas")


@dataclass(slots=True, eq=False, repr=False)
class Subschema:
    value: Any
    """The object or boolean as it was read."""
    draft: Draft
    base: str
    """The address that references in here are relative to."""
    document: str
    """The name of the reference this comes from; "" for the schema itself."""
    path: str
    """JSON pointer inside the document."""
    children: Children = field(default_factory=dict)
    """By keyword, in the shape the keyword gives them."""
    targets: list["Subschema"] = field(default_factory=list)
    """Where `$ref` leads, and `$dynamicRef` or `$recursiveRef` as far as that can be told without an instance."""

    standard_references: dict[str, str] | None = None
    """By keyword: references that only this library can follow, in the spelling that any validator can follow."""

    def place(self, *keys: str) -> str:
        """This place, or one below it, for an error message."""
        pointer = self.path + "".join(f"/{escaped(key)}" for key in keys)
        return f"{self.document}#{pointer}" if self.document else pointer or "/"

    @property
    def is_reference(self) -> bool:
        """Stands for its target and for nothing else."""
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
