"""Reads names, namespaces and aliases from the JSON of an Avro schema."""

import re
from typing import Any, Final

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.avro.types import PRIMITIVES, Name
from headgate.registry.formats.json_text import brief

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def full_name(name: str, namespace: str) -> str:
    if "." in name:
        return name.removeprefix(".") if name.count(".") == 1 else name
    return f"{namespace}.{name}" if namespace else name


def check_name(name: str, path: str) -> None:
    if not name:
        raise InvalidSchema("Empty name", path)
    if not _NAME.match(name):
        first = name[0]
        bad_start = not (first.isascii() and (first.isalpha() or first == "_"))
        raise InvalidSchema(f"Illegal {'initial character' if bad_start else 'character in'}: {name}", path)


def read_name(document: dict[str, Any], namespace: str, path: str, *, strict: bool) -> Name:
    """The name of a record, enum or fixed. `namespace` is the enclosing one."""
    given = document.get("name")
    if not isinstance(given, str):
        raise InvalidSchema(f"No name in schema: {brief(document)}", path)
    own = document.get("namespace")
    space, dot, simple = given.rpartition(".")
    if not dot:
        space = own if isinstance(own, str) else namespace
    name = Name(simple, space)
    if strict:
        check_name(simple, f"{path}/name")
        for part in space.split(".") if space else ():
            try:
                check_name(part, f"{path}/namespace")
            except InvalidSchema as error:
                raise InvalidSchema(f'Namespace part "{part}" is invalid: {error.reason}', error.path) from None
    if name.full in PRIMITIVES:
        raise InvalidSchema(f"Schemas may not be named after primitives: {name.full}", f"{path}/name")
    return name


def read_aliases(document: dict[str, Any], namespace: str, path: str, *, strict: bool) -> tuple[Name, ...]:
    """The aliases of a record, enum or fixed, without duplicates."""
    aliases = []
    for text in read_alias_texts(document, path):
        space, dot, simple = text.rpartition(".")
        if strict:
            check_name(simple, f"{path}/aliases")
        aliases.append(Name(simple, space if dot else namespace))
    return tuple({alias.full: alias for alias in aliases}.values())


def read_alias_texts(document: dict[str, Any], path: str) -> list[str]:
    """The aliases as written."""
    aliases = document.get("aliases")
    if aliases is None:
        return []
    if not isinstance(aliases, list):
        raise InvalidSchema(f"aliases not an array: {brief(document)}", path)
    for alias in aliases:
        if not isinstance(alias, str):
            raise InvalidSchema(f"alias not a string: {brief(alias)}", f"{path}/aliases")
    return aliases
