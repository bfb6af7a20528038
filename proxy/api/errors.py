"""HTTP status and error code of each exception: the codes of Confluent's REST Proxy."""

from typing import Final

from headgate.kafka_client import errors as client
from headgate.kafka_client.errors import BufferFull
from headgate.openapi.media_types import JSON, KAFKA_V2
from headgate.proxy import errors
from headgate.proxy.errors import BodyTimedOut, ProxyError, TooManyRequests
from headgate.web import responses
from headgate.web.asgi import Scope, Send
from headgate.web.errors import ErrorStatus, ErrorTable

ERROR_TABLE: Final = ErrorTable(
    {
        errors.BadRequest: (400, 400),
        errors.InvalidConsumerConfig: (422, 40001),
        client.InvalidRequest: (400, 40002),
        client.NothingCommitted: (400, 400),
        client.ValueTooLong: (400, 400),
        client.NotAuthenticated: (401, 40101),
        client.NotAuthorized: (403, 40301),
        client.ResourceNotFound: (404, 404),
        client.TopicNotFound: (404, 40401),
        client.PartitionNotFound: (404, 40402),
        errors.ConsumerInstanceNotFound: (404, 40403),
        client.LeaderNotFound: (404, 40404),
        client.GroupNotFound: (404, 40405),
        errors.NotAcceptable: (406, 406),
        errors.FormatMismatch: (406, 40601),
        errors.SchemaUnavailable: (408, 40801),
        errors.AlreadySubscribed: (409, 40901),
        errors.ConsumerExists: (409, 40902),
        errors.IllegalState: (409, 40903),
        client.GroupNotEmpty: (409, 40903),
        errors.BodyTooLarge: (413, 413),
        errors.BodyTimedOut: (408, 408),
        errors.UnsupportedMedia: (415, 415),
        errors.Unprocessable: (422, 422),
        errors.KeySchemaMissing: (422, 42201),
        errors.ValueSchemaMissing: (422, 42202),
        errors.ConversionFailed: (422, 42203),
        errors.InvalidConsumerConfigValue: (422, 42204),
        errors.InvalidSchemaGiven: (422, 42205),
        errors.InvalidPayload: (422, 42206),
        client.RecordTooLarge: (422, 42206),
        errors.SerializationFailed: (422, 42207),
        errors.InvalidBatch: (422, 42208),
        client.BufferFull: (429, 429),
        client.BrokerError: (500, 50002),
        client.RetriableError: (500, 50003),
        client.InvalidProperty: (503, 50302),
        client.BrokerUnavailable: (503, 50302),
        errors.OwnerUnavailable: (503, 50302),
        client.ProducerClosed: (503, 50302),
    }
)


def status_of(error: ProxyError) -> ErrorStatus:
    return ERROR_TABLE.status_of(error)


def error_headers(error: ProxyError) -> list[tuple[bytes, bytes]]:
    """Response headers that an error adds."""
    if isinstance(error, BufferFull):
        seconds = error.retry_after_seconds if isinstance(error, TooManyRequests) else 1
        return [(b"retry-after", str(seconds).encode())]
    if isinstance(error, BodyTimedOut):
        return [(b"connection", b"close")]  # Otherwise the server parses the rest of the body as the next request.
    return []


def media_type_of(scope: Scope) -> str:
    """The media type of error responses."""
    return JSON if scope["path"].startswith("/v3") else KAFKA_V2


async def send_error(send: Send, error: ProxyError, media_type: str) -> None:
    status, code = status_of(error)
    await responses.send_error(send, status, code, str(error), media_type, error_headers(error))
