"""Resources of the v3 API: kind, URL, resource name, links to related resources."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote

import orjson
from starlette.requests import Request
from starlette.responses import Response

from headgate.kafka_client.request_client import RequestClient
from headgate.openapi.media_types import JSON
from headgate.proxy.api.addresses import base_url
from headgate.proxy.api.requests import services_of

Row: TypeAlias = dict[str, Any]

# Characters that a path segment may contain without percent-encoding (RFC 3986, section 3.3).
_SEGMENT_SAFE = "!$&'()*+,;=:@~"


@dataclass(frozen=True, slots=True)
class Links:
    """URLs and resource names of one cluster."""

    base: str
    cluster_id: str

    def url(self, *segments: object) -> str:
        path = "/".join(quote(str(segment), safe=_SEGMENT_SAFE) for segment in segments)
        return f"{self.base}/v3/clusters/{quote(self.cluster_id, safe=_SEGMENT_SAFE)}" + (f"/{path}" if path else "")

    def related(self, *segments: object) -> Row:
        return {"related": self.url(*segments)}

    def name(self, *parts: object) -> str:
        """`crn:///kafka=…/topic=…`, from alternating kinds and ids. The last kind may have no id."""
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
    """Context of a v3 route, after the check of the cluster id."""

    request: Request
    links: Links
    cluster: RequestClient


async def v3_of(request: Request, cluster_id: str) -> V3:
    """FastAPI dependency: `Depends(v3_of)`. Raises ResourceNotFound if the path names another cluster."""
    services = services_of(request)
    await services.identity.check(cluster_id)
    return V3(request, Links(base_url(request, services.settings.advertised_url), cluster_id), services.admin)


def respond(row: Any, status: int = 200, location: str | None = None) -> Response:
    headers = {} if location is None else {"location": location}
    return Response(orjson.dumps(row), status_code=status, media_type=JSON, headers=headers)


def no_content(status: int = 204) -> Response:
    return Response(status_code=status)
