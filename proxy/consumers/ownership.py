"""Which worker owns a consumer: the same answer on every worker, from the name alone.

Rendezvous hashing over the configured workers (Thaler and Ravishankar, 1996): no table to share, and a worker that goes
takes only its own consumers along. Nothing a client sends is ever used as an address: it only picks one of the list.
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
                raise UnknownSetting(f"worker.urls holds {url!r}, which is no http address")
        own = None if settings.worker_url is None else settings.worker_url.strip().rstrip("/")
        if urls and own not in urls:
            raise UnknownSetting("worker.url must be one of worker.urls, the address of this very worker")
        return cls(own, urls)

    def elsewhere(self, group: str, name: str) -> str | None:
        """The address of the worker that owns the consumer; None when it is this one."""
        if not self.urls:
            return None
        owner = max(self.urls, key=lambda url: hashlib.blake2b(f"{url}\0{group}\0{name}".encode()).digest())
        return None if owner == self.own_url else owner
