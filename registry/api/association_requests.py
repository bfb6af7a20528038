"""Request bodies of /associations. As in Confluent's registry, unknown fields are ignored."""

from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import msgspec

from headgate.registry import limits
from headgate.registry.api.requests import RegisterRequest, decoded, submitted_schema_from
from headgate.registry.associations import TOPIC, AssociationType, Lifecycle, Resource
from headgate.registry.errors import AssociationBatchTooLarge, InvalidAssociation
from headgate.registry.service.associations import (
    Draft,
    Selected,
    check_consistency,
    check_distinct_types,
    checked_draft,
    checked_resource,
    type_named,
)

T = TypeVar("T")


class AssociationInfo(msgspec.Struct):
    subject: str | None = None
    associationType: str | None = None
    lifecycle: Lifecycle | None = None
    frozen: bool | None = None
    schema: RegisterRequest | None = None
    normalize: bool | None = None


class AssociationOperation(AssociationInfo):
    opType: Literal["CREATE", "UPSERT", "DELETE"] | None = None
    cascadeLifecycle: bool | None = None


class ResourceFields(msgspec.Struct):
    resourceName: str | None = None
    resourceNamespace: str | None = None
    resourceId: str | None = None
    resourceType: str | None = None


class AssociationRequest(ResourceFields):
    associations: list[AssociationInfo] | None = None


class OperationRequest(ResourceFields):
    associations: list[AssociationOperation] | None = None


class BatchRequest(msgspec.Struct):
    requests: list[OperationRequest] | None = None


class GetRequest(ResourceFields):
    associationTypes: list[str] | None = None
    lifecycle: Lifecycle | None = None

    def selected(self) -> Selected:
        if not self.resourceId and not self.resourceName:
            raise InvalidAssociation("resourceId", "either resourceId or resourceName must be specified")
        if self.resourceName and not self.resourceNamespace:
            raise InvalidAssociation("resourceNamespace", "is required when resourceName is specified")
        return Selected(self.resourceType or TOPIC, tuple(self.associationTypes or ()), self.lifecycle)


class BatchGetRequest(msgspec.Struct):
    requests: list[GetRequest] | None = None


_request: Final = msgspec.json.Decoder(AssociationRequest, strict=False)
_batch: Final = msgspec.json.Decoder(BatchRequest, strict=False)
_batch_get: Final = msgspec.json.Decoder(BatchGetRequest, strict=False)


@dataclass(frozen=True, slots=True)
class Deletion:
    type: AssociationType
    cascade: bool


@dataclass(frozen=True, slots=True)
class Change:
    draft: Draft
    create_only: bool


def request_of(body: bytes, path_id: str | None, *, create_only: bool, dry_run: bool) -> tuple[Resource, list[Draft]]:
    """`path_id` is the resource id in the path, if the path has one."""
    wire = decoded(_request, body)
    if path_id is not None and wire.resourceId not in (None, path_id):
        reason = "Resource ID in the path parameter does not match the resource ID in the request body"
        raise InvalidAssociation("resourceId", reason)
    id = path_id if wire.resourceId is None else wire.resourceId
    resource = checked_resource(wire.resourceName, wire.resourceNamespace, id, wire.resourceType, dry_run=dry_run)
    associations = _filled("associations", wire.associations)
    drafts = [checked_draft(resource, _draft(info), create_only=create_only) for info in associations]
    check_consistency(drafts)
    check_distinct_types(drafts)
    return resource, drafts


def _filled(name: str, items: list[T] | None, items_max: int | None = None) -> list[T]:
    if not items:
        raise InvalidAssociation(name, "cannot be null or empty")
    if items_max is not None and len(items) > items_max:
        raise AssociationBatchTooLarge(items_max)
    return items


def _draft(info: AssociationInfo) -> Draft:
    return Draft(
        type_named(info.associationType),
        info.subject,
        info.lifecycle,
        info.frozen,
        None if info.schema is None else submitted_schema_from(info.schema),
        bool(info.normalize),
    )


def batch_of(body: bytes) -> list[OperationRequest]:
    return _filled("requests", decoded(_batch, body).requests, limits.ASSOCIATION_BATCH_MAX)


def operations_of(wire: OperationRequest, *, dry_run: bool) -> tuple[Resource, list[Change | Deletion]]:
    resource = checked_resource(
        wire.resourceName, wire.resourceNamespace, wire.resourceId, wire.resourceType, dry_run=dry_run
    )
    operations: list[Change | Deletion] = []
    for info in _filled("associations", wire.associations, limits.ASSOCIATION_BATCH_MAX):
        if info.opType is None:
            raise InvalidAssociation("opType", "must be CREATE, UPSERT or DELETE")
        if info.opType == "DELETE":
            operations.append(Deletion(type_named(info.associationType), bool(info.cascadeLifecycle)))
            continue
        create_only = info.opType == "CREATE"
        operations.append(Change(checked_draft(resource, _draft(info), create_only=create_only), create_only))
    check_consistency([one.draft for one in operations if isinstance(one, Change)])
    return resource, operations


def batch_get_of(body: bytes, *, with_schemas: bool) -> list[GetRequest]:
    requests_max = limits.ASSOCIATION_SCHEMA_BATCH_MAX if with_schemas else limits.ASSOCIATION_BATCH_MAX
    return _filled("requests", decoded(_batch_get, body).requests, requests_max)
