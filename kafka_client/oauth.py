"""SASL OAUTHBEARER (KIP-255, KIP-768): a fixed token, or the client credentials grant of OAuth 2 (RFC 6749).

Uses only the standard library. A token request runs in a thread, so that it does not block the event loop.
"""

import asyncio
import base64
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Final

from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import SaslAuthenticationFailed

REQUEST_SECONDS_MAX: Final = 10.0
RESPONSE_BYTES_MAX: Final = 1024 * 1024
LIFETIME_USED: Final = 0.8
"""Request a new token after this share of the lifetime, as Java's `sasl.login.refresh.window.factor`."""
LIFETIME_SECONDS_DEFAULT: Final = 300.0
"""Lifetime of a token if the response has no `expires_in`."""


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    token: str | None = field(default=None, repr=False)
    token_endpoint_url: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scope: str | None = None
    ca_file: str | None = None
    """The certificate authority of an https endpoint. None selects the authorities of the operating system."""
    extensions: tuple[tuple[str, str], ...] = ()


class TokenProvider(AbstractTokenProvider):
    """Caches the token until most of its lifetime has passed."""

    def __init__(self, settings: OAuthSettings) -> None:
        self._settings = settings
        self._token = settings.token
        self._valid_until = float("inf") if settings.token is not None else 0.0
        self._requesting = asyncio.Lock()

    async def token(self) -> str:
        """Raises SaslAuthenticationFailed."""
        async with self._requesting:
            token = self._token
            if token is None or time.monotonic() >= self._valid_until:
                new, lifetime = await asyncio.to_thread(request_token, self._settings)
                token = self._token = new
                self._valid_until = time.monotonic() + LIFETIME_USED * lifetime
            return token

    def extensions(self) -> dict[str, str]:
        return dict(self._settings.extensions)


def request_token(settings: OAuthSettings) -> tuple[str, float]:
    """Return the access token and its lifetime in seconds. Raises SaslAuthenticationFailed."""
    assert settings.token_endpoint_url is not None
    form = {"grant_type": "client_credentials", **({"scope": settings.scope} if settings.scope else {})}
    user = urllib.parse.quote(settings.client_id or "", safe="")
    secret = urllib.parse.quote(settings.client_secret or "", safe="")
    request = urllib.request.Request(
        settings.token_endpoint_url,
        urllib.parse.urlencode(form).encode(),
        {
            "authorization": "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode(),
            "accept": "application/json",
        },
    )
    endpoint = settings.token_endpoint_url
    try:
        context = ssl.create_default_context(cafile=settings.ca_file) if endpoint.startswith("https") else None
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS_MAX, context=context) as response:
            document: Any = json.loads(response.read(RESPONSE_BYTES_MAX))
    except urllib.error.HTTPError as error:
        error.close()
        raise SaslAuthenticationFailed(f"{endpoint} answered HTTP {error.code} {error.reason}") from error
    except (OSError, ValueError) as error:
        raise SaslAuthenticationFailed(f"no token from {endpoint}: {error}") from error
    token = document.get("access_token") if isinstance(document, dict) else None
    if not isinstance(token, str) or not token:
        raise SaslAuthenticationFailed(f"the response of {endpoint} contains no access_token")
    lifetime = document.get("expires_in")
    return token, float(lifetime) if isinstance(lifetime, (int, float)) and lifetime > 0 else LIFETIME_SECONDS_DEFAULT
