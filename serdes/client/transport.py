"""What both clients need of httpx: TLS from the settings, and a bound on what is read of an answer."""

import ssl

from serdes.client.settings import RegistrySettings, TlsSettings


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
    """Gathers the chunks of an answer up to a bound."""

    __slots__ = ("_bytes_max", "_gathered")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._gathered = bytearray()

    def add(self, chunk: bytes) -> bool:
        self._gathered += chunk
        return len(self._gathered) <= self._bytes_max

    def content(self) -> bytes:
        return bytes(self._gathered)
