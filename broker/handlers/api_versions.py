"""ApiVersions v0-4: Lists the supported APIs and versions (KIP-35, KIP-511).

The engine answers an unknown version with a v0 body and UNSUPPORTED_VERSION. Then a newer client can retry with a
supported version. No features are advertised, so clients use the classic group protocol and transaction version 1.
"""

from functools import lru_cache

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.entities import ApiVersionRange, response_writer
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import ApiVersionsRequest, RequestContext

API_KEY = 18
VERSIONS = range(5)


def handle(broker: Broker, context: RequestContext, request: ApiVersionsRequest) -> Answer | bytes:
    name, version = request.client_software_name, request.client_software_version
    if context.api_version >= 3 and not (_is_software_word(name) and _is_software_word(version)):
        return {"error_code": ErrorCode.invalid_request, "api_keys": ()}
    return _listing(context.api_version, context.api_versions)


@lru_cache(maxsize=16)
def _listing(version: int, api_versions: tuple[ApiVersionRange, ...]) -> bytes:
    """Return the encoded response body. It is cached, because it is the same for every client."""
    api_keys = [entry._asdict() for entry in api_versions]
    return response_writer(API_KEY, version)({"error_code": ErrorCode.none, "api_keys": api_keys})


def _is_software_word(word: str) -> bool:
    """Whether `word` contains letters, digits, dots and dashes, with a letter or digit at both ends (KIP-511)."""
    inner = word.replace(".", "").replace("-", "")
    return word.isascii() and inner.isalnum() and word[0].isalnum() and word[-1].isalnum()
