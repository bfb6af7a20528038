"""The shape of v3: every resource has a kind, its own address and its name, and points to what it is related to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote

import orjson
from starlette.requests import Request
from starlette.responses import Response

from headgate.openapi.media_types import JSON
from headgate.proxy.admin.cluster import AdminCluster
from headgate.proxy.api.addresses import base_url
from headgate.proxy.api.requests import services_of

Row: TypeAlias = dict[str, Any]

# What may stand in a path segment unescaped (RFC 3986, section 3.3).
_SEGMENT_SAFE = "!$&'()*+,;=:@~"


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses and names of one cluster's resources."""

    base: str
    cluster_id: str

    def url(self, *segments: object) -> str:
        path = "/".join(quote(str(segment), safe=_SEGMENT_SAFE) for segment in segments)
        return f"{self.base}/v3/clusters/{quote(self.cluster_id, safe=_SEGMENT_SAFE)}" + (f"/{path}" if path else "")

    def related(self, *segments: object) -> Row:
        return {"related": self.url(*segments)}

    def name(self, *parts: object) -> str:
        """`crn:///kafka=…/topic=…`: kinds and ids in turn; a last kind may have no id."""
        texts = [quote(str(part), safe=_SEGMENT_SAFE) for part in parts]
        pairs = ["=".join(texts[index : index + 2]) for index in range(0, len(texts), 2)]
        return "/".join([f"crn:///kafka={quote(self.cluster_id, safe=_SEGMENT_SAFE)}", *pairs])

    def resource(self, kind: str, at: Sequence[object], name: Sequence[object], /, **fields: Any) -> Row:
        metadata = {"self": self.url(*at), "resource_name": self.name(*name)}
        return {"kind": kind, "metadata": metadata, "cluster_id": self.cluster_id, **fields}

    def collection(self, kind: str, at: Sequence[object], rows: list[Row]) -> Row:
        return {"kind": kind, "metadata": {"self": self.url(*at), "next": None}, "data": rows}


@dataclass(frozen=True, slots=True)
class V3:
    """What a v3 route works with, once its cluster is known to be the right one."""

    request: Request
    links: Links
    cluster: AdminCluster


async def v3_of(request: Request, cluster_id: str) -> V3:
    """For routes: `Depends(v3_of)`. Raises ResourceNotFound when the path names another cluster."""
    services = services_of(request)
    await services.identity.check(cluster_id)
    return V3(request, Links(base_url(request, services.settings.advertised_url), cluster_id), services.admin)


def answer(row: Any, status: int = 200, location: str | None = None) -> Response:
    headers = {} if location is None else {"location": location}
    return Response(orjson.dumps(row), status_code=status, media_type=JSON, headers=headers)


def nothing(status: int = 204) -> Response:
    return Response(status_code=status)
