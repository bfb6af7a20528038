"""One request to a registry of several addresses: failover, bounded retries with backoff, and the answer understood.

Follows the error codes of Confluent's registry: 404xx says that something is not there, other 4xx that it may not be.
An answer that is not a registry's (a proxy's page, JSON of another shape) counts as no answer.
"""

import base64
import json
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote, unquote, urlencode

from headgate.serdes.client.errors import RegistryUnavailable, RegistryUnreachable, RequestRefused, UnknownSchema
from headgate.serdes.client.exchange import HttpAnswer, HttpRequest, NoAnswer, Pause, Steps
from headgate.serdes.client.settings import BasicAuth, BearerAuth, RegistrySettings

_RETRIED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"


class Conversation:
    """Remembers only which address answered last."""

    def __init__(self, settings: RegistrySettings, random: Callable[[], float]) -> None:
        self._settings = settings
        self._random = random
        self._preferred = 0
        prefix = f"/contexts/{quote(settings.context, safe='')}" if settings.context else ""
        addresses = [_without_credentials(url.rstrip("/")) for url in settings.urls]
        self._names = tuple(address for address, _ in addresses)
        """For messages: credentials must not travel into logs and dead letters."""
        self._bases = tuple(address + prefix for address, _ in addresses)
        self._auths = tuple(settings.auth or auth for _, auth in addresses)

    def ask(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> Steps[dict[str, object] | list[object]]:
        """`path` in parts, quoted here. Raises a `RegistryClientError` and nothing else."""
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
                answer = yield request
                if isinstance(answer, HttpAnswer) and answer.status not in _RETRIED:
                    self._preferred = index
                    return _understood(answer)
                what = f"status {answer.status}" if isinstance(answer, HttpAnswer) else _detail(answer)
                failure = f"{self._names[index]}: {what}"
        raise RegistryUnreachable(f"no answer to {method} {'/'.join(path)} ({failure})")


def _without_credentials(url: str) -> tuple[str, BasicAuth | None]:
    """An address may bring its own, as `http://user:password@host`."""
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
        raise RegistryUnavailable(f"no token to show to the registry: {error!r:.200}") from error


def _detail(answer: NoAnswer | None) -> str:
    return answer.detail if answer is not None else "nothing"


def _understood(answer: HttpAnswer) -> dict[str, object] | list[object]:
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        value = None
    if answer.status == 200 and isinstance(value, (dict, list)):
        return value
    if not isinstance(value, dict) or not isinstance(value.get("error_code"), int) or answer.status < 400:
        raise RegistryUnavailable(f"status {answer.status}, and not a registry's answer")
    code, message = value["error_code"], str(value.get("message", ""))[:500]
    if answer.status == 404 and code != 404:
        raise UnknownSchema(message)
    raise RequestRefused(answer.status, code, message)
