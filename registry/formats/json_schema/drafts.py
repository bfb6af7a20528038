"""The five drafts of JSON Schema, and how a schema says which one it follows."""

from enum import IntEnum
from typing import Any, Final


class Draft(IntEnum):
    """In order of age, so that `draft >= Draft.DRAFT_2019` reads as it should."""

    DRAFT_4 = 4
    DRAFT_6 = 6
    DRAFT_7 = 7
    DRAFT_2019 = 2019
    DRAFT_2020 = 2020

    @property
    def id_keyword(self) -> str:
        return "id" if self is Draft.DRAFT_4 else "$id"

    @property
    def reference_stands_alone(self) -> bool:
        """Up to draft-07 everything beside `$ref` is ignored."""
        return self <= Draft.DRAFT_7


# What Confluent's registry assumes of a schema that does not say.
DEFAULT: Final = Draft.DRAFT_7

META_SCHEMAS: Final = {
    "json-schema.org/draft-04/schema": Draft.DRAFT_4,
    "json-schema.org/draft-06/schema": Draft.DRAFT_6,
    "json-schema.org/draft-07/schema": Draft.DRAFT_7,
    "json-schema.org/draft/2019-09/schema": Draft.DRAFT_2019,
    "json-schema.org/draft/2020-12/schema": Draft.DRAFT_2020,
}


def declared(value: Any) -> Draft | None:
    """The draft that `$schema` names; None when it is absent or names a meta-schema of someone's own."""
    if not isinstance(value, dict):
        return None
    name = value.get("$schema")
    if not isinstance(name, str):
        return None
    _, _, address = name.partition("://")
    return META_SCHEMAS.get(address.rstrip("#"))
