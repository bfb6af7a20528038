"""The five drafts of JSON Schema, and the detection of a schema's draft."""

from enum import IntEnum
from typing import Any, Final


class Draft(IntEnum):
    """Ordered by age, so that drafts can be compared with `>=`."""

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
        """Whether keywords next to `$ref` are ignored (up to draft-07)."""
        return self <= Draft.DRAFT_7


# The default of Confluent's registry for a schema without `$schema`.
DEFAULT: Final = Draft.DRAFT_7

META_SCHEMAS: Final = {
    "json-schema.org/draft-04/schema": Draft.DRAFT_4,
    "json-schema.org/draft-06/schema": Draft.DRAFT_6,
    "json-schema.org/draft-07/schema": Draft.DRAFT_7,
    "json-schema.org/draft/2019-09/schema": Draft.DRAFT_2019,
    "json-schema.org/draft/2020-12/schema": Draft.DRAFT_2020,
}


def declared(value: Any) -> Draft | None:
    """The draft of `$schema`. None if it is absent or a custom meta-schema."""
    if not isinstance(value, dict):
        return None
    name = value.get("$schema")
    if not isinstance(name, str):
        return None
    _, _, address = name.partition("://")
    return META_SCHEMAS.get(address.rstrip("#"))
