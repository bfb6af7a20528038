"""ACLs (DescribeAcls, CreateAcls, DeleteAcls). A broker without these APIs is treated as having no authorizer."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from headgate.kafka_client.errors import ApiUnsupported, InvalidRequest, check
from headgate.kafka_client.request_client import RequestClient
from headgate.kafka_client.requests import Api


class ResourceType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True)
class AclFilter:
    """ANY and None match everything."""

    resource_type: ResourceType
    resource_name: str | None
    pattern_type: PatternType
    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission


async def search(client: RequestClient, wanted: AclFilter) -> list[Acl]:
    """Raises InvalidRequest if the broker has no authorizer."""
    try:
        answer = await client.send(Api.DESCRIBE_ACLS, _filter(wanted))
    except ApiUnsupported as error:
        raise InvalidRequest("No Authorizer is configured on the broker") from error
    check(answer.error_code, answer.error_message, "ACLs")
    found = [_acl(resource, resource.pattern_type, row) for resource in answer.resources for row in resource.acls]
    return sorted(found)


async def create(client: RequestClient, acls: Sequence[Acl]) -> None:
    request = [
        {
            "resource_type": int(acl.resource_type),
            "resource_name": acl.resource_name,
            "resource_pattern_type": int(acl.pattern_type),
            "principal": acl.principal,
            "host": acl.host,
            "operation": int(acl.operation),
            "permission_type": int(acl.permission),
        }
        for acl in acls
    ]
    try:
        answer = await client.send(Api.CREATE_ACLS, {"creations": request})
    except ApiUnsupported as error:
        raise InvalidRequest("No Authorizer is configured.") from error
    for result in answer.results:
        check(result.error_code, result.error_message, "ACL")


async def delete(client: RequestClient, wanted: AclFilter) -> list[Acl]:
    """Returns the deleted ACLs."""
    try:
        answer = await client.send(Api.DELETE_ACLS, {"filters": [_filter(wanted)]})
    except ApiUnsupported as error:
        raise InvalidRequest("No Authorizer is configured.") from error
    deleted: list[Acl] = []
    for result in answer.filter_results:
        check(result.error_code, result.error_message, "ACLs")
        for row in result.matching_acls:
            check(row.error_code, row.error_message, "ACL")
            deleted.append(_acl(row, row.pattern_type, row))
    return sorted(deleted)


def _filter(wanted: AclFilter) -> dict[str, object]:
    return {
        "resource_type_filter": int(wanted.resource_type),
        "resource_name_filter": wanted.resource_name,
        "pattern_type_filter": int(wanted.pattern_type),
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": int(wanted.operation),
        "permission_type": int(wanted.permission),
    }


def _acl(resource: Any, pattern_type: int, row: Any) -> Acl:
    return Acl(
        _known(ResourceType, resource.resource_type),
        resource.resource_name,
        _known(PatternType, pattern_type),
        row.principal,
        row.host,
        _known(Operation, row.operation),
        _known(Permission, row.permission_type),
    )


def _known(kind: Any, number: int) -> Any:
    """Returns UNKNOWN for values of newer Kafka versions."""
    return kind(number) if number in set(kind) else kind.UNKNOWN
