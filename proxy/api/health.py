"""Liveness (`/healthy`), readiness (`/ready`) and the state of Kafka and the registry (`/health`)."""

import asyncio
from typing import Final

import httpx
import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from headgate.kafka_client.admin.topics import describe_cluster
from headgate.kafka_client.errors import BrokerUnavailable, KafkaClientError
from headgate.openapi.media_types import JSON
from headgate.proxy.api.requests import services_of

router = APIRouter()

HEALTH_SECONDS_MAX: Final = 3.0
"""Timeout of each check. Load balancers usually wait five seconds for a health check."""
_SERVER_ERROR: Final = 500


@router.get("/healthy")
async def healthy() -> Response:
    """204 if the process runs, also without Kafka."""
    return Response(status_code=204)


@router.get("/ready")
async def ready(request: Request) -> Response:
    """Raises BrokerUnavailable."""
    state = await _kafka(request)
    if state["status"] != "UP":
        raise BrokerUnavailable(str(state["message"]))
    return Response(status_code=204)


@router.get("/health")
async def health(request: Request) -> Response:
    """DOWN (503) without Kafka. DEGRADED without the registry, which only payloads with a schema need."""
    kafka, registry = await asyncio.gather(_kafka(request), _registry(request))
    status = kafka["status"]
    if status == "UP" and registry["status"] != "UP":
        status = "DEGRADED"
    row = {"status": status, "kafka": kafka, "registry": registry}
    return Response(orjson.dumps(row), status_code=200 if kafka["status"] == "UP" else 503, media_type=JSON)


async def _kafka(request: Request) -> dict[str, object]:
    try:
        async with asyncio.timeout(HEALTH_SECONDS_MAX):
            view = await describe_cluster(services_of(request).admin)
    except KafkaClientError as error:
        return {"status": "DOWN", "message": str(error)}
    except TimeoutError:
        return {"status": "DOWN", "message": f"No broker responded within {HEALTH_SECONDS_MAX:.0f} s."}
    return {"status": "UP", "cluster_id": view.cluster_id, "brokers": len(view.brokers)}


async def _registry(request: Request) -> dict[str, object]:
    services = services_of(request)
    url = services.settings.schema_registry_url.rstrip("/")
    try:
        async with asyncio.timeout(HEALTH_SECONDS_MAX):
            response = await services.peers.get(f"{url}/schemas/types")
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as error:
        return {"status": "DOWN", "message": f"The schema registry is not available: {type(error).__name__}."}
    if response.status_code >= _SERVER_ERROR:
        return {"status": "DOWN", "message": f"The schema registry responds with HTTP status {response.status_code}."}
    return {"status": "UP"}
