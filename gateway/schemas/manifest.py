"""`schemas.toml`: the subjects of a folder of schema files.

compatibility = "BACKWARD"               # level of all subjects; optional

[subjects.orders-value]
file = "order.avsc"                      # .avsc, .json or .proto
compatibility = "FULL"                   # overrides the level above; optional
references = { "com.example.Money" = "money" }   # name in the schema = subject of this manifest; optional
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from headgate.registry import limits
from headgate.registry.errors import InvalidSubject
from headgate.registry.model import Level, SchemaType
from headgate.registry.subjects import checked

NAME: Final = "schemas.toml"
LANGUAGES: Final = {".avsc": SchemaType.AVRO, ".json": SchemaType.JSON, ".proto": SchemaType.PROTOBUF}

# Limits the requests of a plan: a few per subject.
SUBJECTS_MAX: Final = 10_000


class InvalidManifest(Exception):
    """The manifest or the folder cannot be used. The message says where and why."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A subject in the manifest."""

    subject: str
    file: str
    type: SchemaType
    level: Level | None = None
    references: Mapping[str, str] = field(default_factory=dict)
    """Names inside the schema, and the subjects that define them."""


def parse_manifest(content: bytes) -> list[Declared]:
    """Raises InvalidManifest."""
    try:
        document = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise InvalidManifest(f"{NAME} is not UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidManifest(f"{NAME} is not TOML: {error}") from None
    _check_keys("", document, {"compatibility", "subjects"})
    level = _level("", document)
    subjects = _table("subjects", document.get("subjects", {}))
    if len(subjects) > SUBJECTS_MAX:
        raise InvalidManifest(f"{NAME} has more than {SUBJECTS_MAX} subjects")
    declared = [_declared(name, _table(name, entry), level) for name, entry in subjects.items()]
    for one in declared:
        for name, target in one.references.items():
            if target not in subjects:
                raise InvalidManifest(f"{NAME}: {one.subject}: reference {name}: there is no subject {target!r}")
    return declared


def _declared(subject: str, entry: Mapping[str, Any], level: Level | None) -> Declared:
    try:
        checked(subject)
    except InvalidSubject as error:
        raise InvalidManifest(f"{NAME}: {error}") from None
    _check_keys(subject, entry, {"file", "compatibility", "references"})
    file = entry.get("file")
    if not isinstance(file, str) or not _is_inside(file):
        raise InvalidManifest(f"{NAME}: {subject}: file must be a path inside the folder, without .. and \\")
    language = LANGUAGES.get(PurePosixPath(file).suffix)
    if language is None:
        raise InvalidManifest(f"{NAME}: {subject}: {file} must end in {', '.join(LANGUAGES)}")
    references = _table(f"{subject}: references", entry.get("references", {}))
    if len(references) > limits.REFERENCES_MAX or not all(isinstance(each, str) for each in references.values()):
        raise InvalidManifest(f"{NAME}: {subject}: references must map up to {limits.REFERENCES_MAX} names to subjects")
    return Declared(subject, file, language, _level(subject, entry) or level, references)


def _is_inside(path: str) -> bool:
    parts = path.split("/")
    return path.isprintable() and "\\" not in path and not {"", ".", ".."} & set(parts)


def _level(subject: str, entry: Mapping[str, Any]) -> Level | None:
    text = entry.get("compatibility")
    if text is None:
        return None
    try:
        return Level(str(text).upper())
    except ValueError:
        place = f"{subject}: " if subject else ""
        raise InvalidManifest(f"{NAME}: {place}compatibility must be one of {', '.join(Level)}") from None


def _table(place: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidManifest(f"{NAME}: {place} must be a table")
    return value


def _check_keys(subject: str, entry: Mapping[str, Any], known: set[str]) -> None:
    for key in entry:
        if key not in known:
            place = f"{subject}: " if subject else ""
            raise InvalidManifest(f"{NAME}: {place}unknown key {key!r}; known keys are {', '.join(sorted(known))}")
