"""Parses request bodies, paths and query parameters.

Bodies are parsed as in Confluent's registry: numbers may be strings, unknown fields are errors, and data after the JSON
object is ignored.
"""

import re
from typing import Final, TypeVar
from urllib.parse import unquote

import msgspec
from starlette.requests import Request

from headgate.registry import limits
from headgate.registry.api.errors import HttpError
from headgate.registry.languages import type_named
from headgate.registry.service.encryption_rules import with_kms_defaults
from headgate.registry.service.schema_tags import FIELD, RECORD, TagChange
from headgate.registry.service.submitted_schema import SubmittedSchema
from headgate.registry.wire import (
    WireConfig,
    WireMetadata,
    WireReference,
    WireRuleSet,
    metadata_of,
    plain_text,
    references_of,
    rule_set_of,
)
from headgate.web.errors import REASONS

_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `(.*?)`(?: - at `.*`)?\Z", re.DOTALL)
_TRAILING: Final = re.compile(r"trailing characters \(byte (\d+)\)")
T = TypeVar("T")


class Entity(msgspec.Struct, forbid_unknown_fields=True):
    entityPath: str | None = None
    entityType: str | None = None


class SchemaTags(msgspec.Struct, forbid_unknown_fields=True):
    schemaEntity: Entity | None = None
    tags: list[str] | None = None


class RegisterRequest(msgspec.Struct, forbid_unknown_fields=True):
    schema: str | None = None
    schemaType: str | None = None
    references: list[WireReference] | None = None
    metadata: WireMetadata | None = None
    ruleSet: WireRuleSet | None = None
    version: int | None = None
    id: int | None = None
    subject: str | None = None
    guid: str | None = None
    ts: int | None = None
    createTs: int | None = None
    deleted: bool | None = None
    schemaTagsToAdd: list[SchemaTags] | None = None
    schemaTagsToRemove: list[SchemaTags] | None = None
    propagateSchemaTags: bool | None = None


class TagRequest(msgspec.Struct, forbid_unknown_fields=True):
    newVersion: int | None = None
    tagsToAdd: list[SchemaTags] | None = None
    tagsToRemove: list[SchemaTags] | None = None
    metadata: WireMetadata | None = None
    ruleSet: WireRuleSet | None = None
    rulesToMerge: WireRuleSet | None = None
    rulesToRemove: list[str] | None = None


class ModeRequest(msgspec.Struct, forbid_unknown_fields=True):
    mode: str | None = None


_register: Final = msgspec.json.Decoder(RegisterRequest, strict=False)
_tags: Final = msgspec.json.Decoder(TagRequest, strict=False)
_mode: Final = msgspec.json.Decoder(ModeRequest, strict=False)
_config: Final = msgspec.json.Decoder(WireConfig, strict=False)


def decoded(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    """Decodes `body`. Raises HttpError, which names the invalid field."""
    if not body.strip():
        raise HttpError(422, "The request body must not be empty")
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        unknown = _UNKNOWN_FIELD.search(str(error))
        if unknown:
            raise HttpError(422, f"Unrecognized field: {unknown.group(1)}") from None
        raise HttpError(400, f"The request body is not valid: {plain_text(error)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        trailing = _TRAILING.search(str(error))
        if trailing:
            return decoded(decoder, body[: int(trailing.group(1)) - 1])
        raise HttpError(400, f"The request body is not valid JSON: {plain_text(error)}") from None
    except RecursionError:
        raise HttpError(400, "The request body is nested too deeply") from None


def submitted_schema_of(body: bytes) -> SubmittedSchema:
    return submitted_schema_from(decoded(_register, body))


def submitted_schema_from(request: RegisterRequest) -> SubmittedSchema:
    version = request.version or 0
    if not -1 <= version <= limits.VERSION_MAX:
        raise HttpError(422, f"The version {version} is not between 1 and 2^31-1", 42202)
    return SubmittedSchema(
        type=type_named(request.schemaType),
        text=request.schema or "",
        references=references_of(request.references),
        metadata=metadata_of(request.metadata),
        rule_set=with_kms_defaults(rule_set_of(request.ruleSet)),
        version=version,
        id=None if request.id is None or request.id < 0 else request.id,
        tags_to_add=tag_changes(request.schemaTagsToAdd),
        tags_to_remove=tag_changes(request.schemaTagsToRemove),
        propagate_tags=bool(request.propagateSchemaTags),
    )


def tag_changes(wire: list[SchemaTags] | None) -> tuple[TagChange, ...]:
    changes = []
    for one in wire or ():
        entity = one.schemaEntity
        kind = None if entity is None or entity.entityType is None else entity.entityType.lower()
        if entity is None or not entity.entityPath or kind not in (RECORD, FIELD):
            raise HttpError(
                422, "schemaEntity requires entityPath, and entityType must be sr_record or sr_field", 42201
            )
        changes.append(TagChange(entity.entityPath, kind, tuple(one.tags or ())))
    return tuple(changes)


def tag_request_of(body: bytes) -> TagRequest:
    return decoded(_tags, body)


def mode_of(body: bytes) -> str | None:
    return decoded(_mode, body).mode


def config_of(body: bytes) -> WireConfig:
    return decoded(_config, body)


class Parameters:
    """Path and query parameters. Paths are percent-encoded here, because a subject may contain a slash."""

    def __init__(self, request: Request) -> None:
        self._path = request.path_params
        self._query = request.query_params

    def path(self, name: str) -> str:
        return unquote(self._path[name])

    def has_path(self, name: str) -> bool:
        return name in self._path

    def subject(self) -> str:
        return self.path("subject")

    def path_number(self, name: str) -> int:
        text = self.path(name)
        if not (text.isascii() and text.isdigit()) or int(text[:20]) > limits.ID_MAX:
            raise HttpError(404, REASONS[404])
        return int(text)

    def flag(self, name: str) -> bool:
        text = self._query.get(name)
        if text is None or text == "":
            return False
        if text.lower() not in ("true", "false"):
            raise HttpError(400, f"The parameter {name} must be true or false, not '{text[:100]}'")
        return text.lower() == "true"

    def text(self, name: str) -> str:
        return self._query.get(name, "")

    def texts(self, name: str) -> list[str]:
        return self._query.getlist(name)

    def given(self, name: str) -> bool:
        return name in self._query

    def number(self, name: str, default: int) -> int:
        text = self._query.get(name)
        if text is None or text == "":
            return default
        digits = text[1:] if text.startswith("-") else text
        if not (digits.isascii() and digits.isdigit()) or int(digits[:20]) > limits.ID_MAX:
            raise HttpError(400, f"The parameter {name} must be an integer up to 2^31-1, not '{text[:100]}'")
        return int(text)

    def page(self, default: int = limits.PAGE_DEFAULT) -> tuple[int, int]:
        """Offset and limit. The default replaces a limit that is negative or larger than the largest page."""
        offset = self.number("offset", 0)
        if offset < 0:
            raise HttpError(400, f"The parameter offset must not be negative, but is {offset}")
        limit = self.number("limit", -1)
        return offset, limit if 0 < limit <= limits.PAGE_MAX else default
