"""TLS settings for httpx, and limits for responses."""

import ssl
import time

from headgate.serdes.client.settings import RegistrySettings, TlsSettings


def tls_context(tls: TlsSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=tls.ca_file)
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate_file:
        context.load_cert_chain(tls.certificate_file, tls.key_file, tls.key_password)
    return context


def needs_tls(settings: RegistrySettings) -> bool:
    return any(url.startswith("https://") for url in settings.urls)


class Bounded:
    """Collects the chunks of a response, with limits for size and time.

    The timeout of httpx applies to each chunk only.
    """

    __slots__ = ("_bytes_max", "_ends", "_gathered")

    def __init__(self, settings: RegistrySettings) -> None:
        self._bytes_max = settings.answer_bytes_max
        self._ends = time.monotonic() + settings.timeout_seconds
        self._gathered = bytearray()

    def add(self, chunk: bytes) -> bool:
        self._gathered += chunk
        return len(self._gathered) <= self._bytes_max and time.monotonic() < self._ends

    def content(self) -> bytes:
        return bytes(self._gathered)
