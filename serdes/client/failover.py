"""Sends one request to a registry with several addresses: failover, retries with backoff, and response parsing.

Follows the error codes of Confluent's registry: 404xx means not found, other 4xx mean that the request is refused. A
response that is not from a registry (an error page of a proxy, other JSON) counts as no response.
"""

import base64
import json
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote, unquote, urlencode

from headgate.serdes.client.errors import RegistryUnavailable, RegistryUnreachable, RequestRefused, UnknownSchema
from headgate.serdes.client.settings import BasicAuth, BearerAuth, RegistrySettings
from headgate.serdes.client.steps import HttpRequest, HttpResponse, NoResponse, Pause, Steps

_RETRIED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"


class FailoverRequests:
    """Remembers the address that responded last."""

    def __init__(self, settings: RegistrySettings, random: Callable[[], float]) -> None:
        self._settings = settings
        self._random = random
        self._preferred = 0
        prefix = f"/contexts/{quote(settings.context, safe='')}" if settings.context else ""
        addresses = [_without_credentials(url.rstrip("/")) for url in settings.urls]
        self._names = tuple(address for address, _ in addresses)
        """The addresses for error messages. Logs and dead letters must not contain credentials."""
        self._bases = tuple(address + prefix for address, _ in addresses)
        self._auths = tuple(settings.auth or auth for _, auth in addresses)

    def send(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> Steps[dict[str, object] | list[object]]:
        """Send a request. `path` consists of unquoted parts. Raises a `RegistryClientError` and no other error."""
        settings, count = self._settings, len(self._bases)
        target = "/" + "/".join(quote(part, safe="") for part in path) + (f"?{urlencode(query)}" if query else "")
        content = None if body is None else json.dumps(body).encode()
        failure = ""
        for attempt in range(settings.attempts_max):
            if attempt:
                yield Pause(
                    self._random() * min(settings.backoff_seconds * 2 ** (attempt - 1), settings.backoff_max_seconds)
                )
            for turn in range(count):
                index = (self._preferred + turn) % count
                request = HttpRequest(method, self._bases[index] + target, _headers(self._auths[index]), content)
                response = yield request
                if isinstance(response, HttpResponse) and response.status not in _RETRIED:
                    self._preferred = index
                    return _parsed_response(response)
                what = f"status {response.status}" if isinstance(response, HttpResponse) else _detail(response)
                failure = f"{self._names[index]}: {what}"
        raise RegistryUnreachable(f"no response to {method} {'/'.join(path)} ({failure})")


def _without_credentials(url: str) -> tuple[str, BasicAuth | None]:
    """The credentials in an address such as `http://user:password@host`."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    user_info, at, host = authority.rpartition("@")
    if not at:
        return url, None
    user, _, password = user_info.partition(":")
    return f"{scheme}://{host}{slash}{path}", BasicAuth(unquote(user), unquote(password))


def _headers(auth: BasicAuth | BearerAuth | None) -> tuple[tuple[str, str], ...]:
    headers = [("Accept", f"{_MEDIA_TYPE}, application/json"), ("Content-Type", _MEDIA_TYPE)]
    if isinstance(auth, BasicAuth):
        pair = base64.b64encode(f"{auth.username}:{auth.password}".encode()).decode()
        headers.append(("Authorization", f"Basic {pair}"))
    elif isinstance(auth, BearerAuth):
        token = auth.token if isinstance(auth.token, str) else _renewed(auth.token)
        headers.append(("Authorization", f"Bearer {token}"))
    return tuple(headers)


def _renewed(token: Callable[[], str]) -> str:
    try:
        return token()
    except Exception as error:
        raise RegistryUnavailable(f"cannot get a token for the registry: {error!r:.200}") from error


def _detail(response: NoResponse | None) -> str:
    return response.detail if response is not None else "nothing"


def _parsed_response(response: HttpResponse) -> dict[str, object] | list[object]:
    try:
        value = json.loads(response.body)
    except (ValueError, RecursionError):
        value = None
    if response.status == 200 and isinstance(value, (dict, list)):
        return value
    if not isinstance(value, dict) or not isinstance(value.get("error_code"), int) or response.status < 400:
        raise RegistryUnavailable(f"status {response.status}, and not a response of a schema registry")
    code, message = value["error_code"], str(value.get("message", ""))[:500]
    if response.status == 404 and code != 404:
        raise UnknownSchema(message)
    raise RequestRefused(response.status, code, message)
