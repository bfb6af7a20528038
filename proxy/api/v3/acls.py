"""ACLs: search, create one or several, delete by filter."""

from enum import IntEnum
from typing import Annotated, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from headgate.kafka_client.admin import acls
from headgate.kafka_client.admin.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from headgate.proxy.api.requests import Body, body_v3, response_type_v3
from headgate.proxy.api.v3.resources import V3, Links, Row, no_content, respond, v3_of
from headgate.proxy.errors import BadRequest, InvalidPayload

router = APIRouter(prefix="/v3/clusters/{cluster_id}/acls", dependencies=[Depends(response_type_v3)])
batch_router = APIRouter(prefix="/v3/clusters/{cluster_id}", dependencies=[Depends(response_type_v3)])
Context = Annotated[V3, Depends(v3_of)]
Kind = TypeVar("Kind", bound=IntEnum)


class CreateAcl(Body):
    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str

    def acl(self) -> Acl:
        """Raises BadRequest."""
        return Acl(
            _definite(ResourceType, "resource_type", self.resource_type),
            self.resource_name,
            _definite(PatternType, "pattern_type", self.pattern_type),
            self.principal,
            self.host,
            _definite(Operation, "operation", self.operation),
            _definite(Permission, "permission", self.permission),
        )


class CreateAcls(Body):
    data: list[CreateAcl] | None = None


@router.get("")
async def search(v3: Context, request: Request) -> Response:
    wanted = _filter(request)
    rows = [acl_row(v3.links, acl) for acl in await acls.search(v3.cluster, wanted)]
    collection = v3.links.collection("KafkaAclList", ("acls",), rows)
    collection["metadata"]["self"] += "?" + urlencode(
        {
            "resource_type": wanted.resource_type.name,
            "resource_name": wanted.resource_name or "",
            "pattern_type": wanted.pattern_type.name,
            "principal": wanted.principal or "",
            "host": wanted.host or "",
            "operation": wanted.operation.name,
            "permission": wanted.permission.name,
        }
    )
    return respond(collection)


@router.post("")
async def create(v3: Context, request: Request) -> Response:
    acl = (await body_v3(request, CreateAcl)).acl()
    await acls.create(v3.cluster, [acl])
    return Response(status_code=201, headers={"location": _address(v3.links, acl)})


@batch_router.post("/acls:batch")
async def create_many(v3: Context, request: Request) -> Response:
    body = await body_v3(request, CreateAcls)
    if body.data is None:
        raise InvalidPayload("Payload error. Null input provided. Data is required.")
    wanted = [each.acl() for each in body.data]
    if not wanted:
        raise BadRequest("data must contain at least one ACL.")
    await acls.create(v3.cluster, wanted)
    return no_content(201)


@router.delete("")
async def delete(v3: Context, request: Request) -> Response:
    """Requires all filter types, so that a missing parameter does not delete all ACLs."""
    for name in ("resource_type", "pattern_type", "operation", "permission"):
        if name not in request.query_params:
            raise BadRequest(f"{name} is required. ANY matches all.")
    deleted = await acls.delete(v3.cluster, _filter(request))
    return respond({"data": [acl_row(v3.links, acl) for acl in deleted]})


def acl_row(links: Links, acl: Acl) -> Row:
    return {
        "kind": "KafkaAcl",
        "metadata": {"self": _address(links, acl)},
        "cluster_id": links.cluster_id,
        **_fields(acl),
    }


def _fields(acl: Acl) -> dict[str, str]:
    return {
        "resource_type": acl.resource_type.name,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permission": acl.permission.name,
    }


def _address(links: Links, acl: Acl) -> str:
    return f"{links.url('acls')}?{urlencode(_fields(acl), safe='*:')}"


def _filter(request: Request) -> AclFilter:
    """Raises BadRequest."""
    query = request.query_params
    return AclFilter(
        _matching(ResourceType, "resource_type", query.get("resource_type", "ANY")),
        query.get("resource_name") or None,
        _matching(PatternType, "pattern_type", query.get("pattern_type", "ANY")),
        query.get("principal") or None,
        query.get("host") or None,
        _matching(Operation, "operation", query.get("operation", "ANY")),
        _matching(Permission, "permission", query.get("permission", "ANY")),
    )


def _matching(kind: type[Kind], name: str, text: str) -> Kind:
    """A value of a filter. Raises BadRequest."""
    words = [each.name for each in kind if each.name != "UNKNOWN"]
    if text.upper() not in words:
        raise BadRequest(f"{name} must be one of {', '.join(words)}, not {text[:40]!r}.")
    return kind[text.upper()]


def _definite(kind: type[Kind], name: str, text: str) -> Kind:
    """A value of an ACL, which must not be a wildcard. Raises BadRequest."""
    if text.upper() in ("ANY", "MATCH", "UNKNOWN"):
        raise BadRequest(f"{name} cannot be {text.upper()}")
    return _matching(kind, name, text)
