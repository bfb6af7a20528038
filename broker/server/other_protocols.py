"""Detects TLS and HTTP clients by their first bytes. Both are common configuration errors."""

_TLS_HANDSHAKE, _TLS_MAJOR_VERSION = 0x16, 0x03
_HTTP_BEGINNINGS = (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI ")


def other_protocol(size: int) -> str:
    """Return a hint for the log if `size`, the frame length, is the start of TLS or HTTP. Otherwise return ''."""
    first = size.to_bytes(4, signed=True)
    if first[0] == _TLS_HANDSHAKE and first[1] == _TLS_MAJOR_VERSION:
        return "; this looks like TLS, and this listener speaks PLAINTEXT"
    if first in _HTTP_BEGINNINGS:
        return "; this looks like HTTP, and this port speaks Kafka's protocol"
    return ""
