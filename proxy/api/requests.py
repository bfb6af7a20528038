"""Parts of a request that routes need: services, response media type, JSON bodies as models, integers in paths."""

from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request

from headgate.kafka_client.errors import ResourceNotFound
from headgate.openapi.media_types import JSON, KAFKA_V2, content_type, negotiate
from headgate.proxy.api.request_body import parse_json, read_body
from headgate.proxy.errors import BadRequest, InvalidPayload, NotAcceptable, UnsupportedMedia
from headgate.proxy.services import Services
from headgate.web.errors import REASONS

V2_RESPONSES: Final = (KAFKA_V2, "application/vnd.kafka+json", JSON)
V2_REQUESTS: Final = frozenset({*V2_RESPONSES, "application/vnd.kafka.json.v2+json", "application/octet-stream"})
V3_RESPONSES: Final = (JSON,)
V3_REQUESTS: Final = frozenset({JSON})
INT32_MAX: Final = 2**31 - 1
_MESSAGES_MAX: Final = 5
"""Validation errors in one error message."""

Model = TypeVar("Model", bound=BaseModel)


class Body(BaseModel):
    """Base class of request bodies. Rejects unknown fields and does not convert between types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def services_of(request: Request) -> Services:
    """FastAPI dependency: `Depends(services_of)`."""
    services: Services = request.app.state.services
    return services


def response_type_v2(request: Request) -> str:
    """The media type of the response. Raises NotAcceptable."""
    return _negotiated(request, V2_RESPONSES)


def response_type_v3(request: Request) -> str:
    """The media type of the response. Raises NotAcceptable."""
    return _negotiated(request, V3_RESPONSES)


def _negotiated(request: Request, offered: tuple[str, ...]) -> str:
    chosen = negotiate(request.headers.get("accept", ""), offered)
    if chosen is None:
        raise NotAcceptable
    return chosen


async def body_v2(request: Request, model: type[Model]) -> Model:
    return await _body(request, model, V2_REQUESTS)


async def body_v3(request: Request, model: type[Model]) -> Model:
    return await _body(request, model, V3_REQUESTS)


async def _body(request: Request, model: type[Model], media_types: frozenset[str]) -> Model:
    """Raises UnsupportedMedia, BodyTooLarge, BadRequest, InvalidPayload."""
    given = request.headers.get("content-type")
    if given is not None and content_type(given)[0] not in media_types:
        raise UnsupportedMedia
    limits = services_of(request).settings
    content = await read_body(request.receive, limits.request_body_bytes_max, limits.request_body_timeout_ms / 1000)
    parsed = parse_json(content) if content.strip() else None
    if parsed is None:
        raise InvalidPayload("Payload error. Null input provided. Data is required.")
    return validated(parsed, model)


def validated(parsed: Any, model: type[Model]) -> Model:
    """Raises BadRequest, which names the invalid fields."""
    try:
        return model.model_validate(parsed)
    except ValidationError as error:
        messages = [f"{_place(row['loc'])}: {row['msg']}" for row in error.errors()[:_MESSAGES_MAX]]
        raise BadRequest("; ".join(messages)) from error


def _place(location: tuple[int | str, ...]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.lstrip(".") or "body"


def number_in_path(text: str) -> int:
    """The id of a broker or partition. Raises ResourceNotFound for other text."""
    if text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= INT32_MAX:
        return int(text)
    raise ResourceNotFound(REASONS[404])
