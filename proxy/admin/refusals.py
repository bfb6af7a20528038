"""Maps the error codes of responses to errors of the proxy."""

from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import broker_error
from headgate.proxy.errors import ProxyError
from headgate.proxy.kafka_errors import proxy_error


def refusal(code: ErrorCode, message: str | None, subject: str) -> ProxyError:
    """Returns the error for a code. Its text is the broker's message, or the subject and the name of the code."""
    return proxy_error(broker_error(code, message, subject))


def check(code: ErrorCode, message: str | None, subject: str) -> None:
    """Raises ProxyError unless the code is NONE."""
    if code is not ErrorCode.none:
        raise refusal(code, message, subject)
