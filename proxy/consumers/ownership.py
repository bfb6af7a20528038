"""Selects the worker that owns a consumer. All workers compute the same owner from the name of the consumer.

Rendezvous hashing over the configured workers (Thaler and Ravishankar, 1996) needs no shared table. If a worker is
removed, only its consumers move. A client can select a URL from the list, but cannot provide one.
"""

import hashlib
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from headgate.proxy.settings import ProxySettings, UnknownSetting


@dataclass(frozen=True, slots=True)
class Ownership:
    own_url: str | None
    urls: tuple[str, ...]

    @classmethod
    def of(cls, settings: ProxySettings) -> Self:
        """Raises UnknownSetting."""
        urls = tuple(url.strip().rstrip("/") for url in settings.worker_urls.split(",") if url.strip())
        for url in urls:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
                raise UnknownSetting(f"worker.urls contains {url!r}, which is not an http URL")
        own = None if settings.worker_url is None else settings.worker_url.strip().rstrip("/")
        if urls and own not in urls:
            raise UnknownSetting("worker.url must be one of worker.urls")
        return cls(own, urls)

    def elsewhere(self, group: str, name: str) -> str | None:
        """Returns the URL of the owner, or None if this worker is the owner."""
        if not self.urls:
            return None
        owner = max(self.urls, key=lambda url: hashlib.blake2b(f"{url}\0{group}\0{name}".encode()).digest())
        return None if owner == self.own_url else owner
