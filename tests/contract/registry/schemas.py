"""Schemas that the tests register."""

import json
from typing import Any


def record(*fields: Any, name: str = "R", **attributes: Any) -> str:
    """Return a record schema. A field is a name (of type string), a pair of name and type, or a complete field."""
    return json.dumps(
        {"type": "record", "name": name, "fields": [_field(field) for field in fields], **attributes},
        separators=(",", ":"),
    )


def _field(field: Any) -> dict[str, Any]:
    if isinstance(field, str):
        return {"name": field, "type": "string"}
    if isinstance(field, tuple):
        return {"name": field[0], "type": field[1]}
    return dict(field)


def defaulted(name: str, default: Any = "", type: Any = "string") -> dict[str, Any]:
    return {"name": name, "type": type, "default": default}


def distinct(count: int) -> list[str]:
    """Return records with the same name and different fields, which are incompatible with each other."""
    return [record(f"f{index}") for index in range(count)]
