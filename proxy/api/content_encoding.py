"""Content-Encoding for all routes: decompresses request bodies and compresses responses (RFC 9110, section 8.4).

Each decompression step has a limited output, so that a decompression bomb uses no more memory than a normal body.
`request_body` limits the total size.
"""

import zlib
from collections.abc import Callable
from typing import Final, Protocol

import zstandard

from headgate.proxy.errors import BadRequest, UnsupportedMedia
from headgate.web.asgi import Message, Receive, Scope, Send

PIECE_BYTES_MAX: Final = 1024 * 1024
"""Output of one gzip step."""
ZSTD_STEP_BYTES: Final = 512
"""Input of one zstd step. Four bytes can expand to a block of 128 KiB, so one step yields at most 16 MiB."""
ZSTD_WINDOW_BYTES_MAX: Final = 8 * 1024 * 1024
"""The limit of RFC 9659 for the content coding zstd."""
COMPRESSED_BYTES_MIN: Final = 1024
"""Smaller responses are not compressed: the additional headers would cost more than compression saves."""

_GZIP_WINDOW: Final = 31
_COMPRESSIBLE: Final = (b"json", b"text/", b"ndjson", b"yaml")


class Decompressor(Protocol):
    def feed(self, data: bytes) -> list[bytes]:
        """The decompressed data in pieces. Raises BadRequest."""
        ...

    def end(self) -> None:
        """Raises BadRequest if the stream is incomplete."""
        ...


class _GzipDecompressor:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(_GZIP_WINDOW)
        self._has_data = False

    def feed(self, data: bytes) -> list[bytes]:
        pieces: list[bytes] = []
        try:
            while data:
                if self._inner.eof:
                    self._inner = zlib.decompressobj(_GZIP_WINDOW)
                self._has_data = True
                piece = self._inner.decompress(data, PIECE_BYTES_MAX)
                if piece:
                    pieces.append(piece)
                data = self._inner.unconsumed_tail or self._inner.unused_data
        except zlib.error as error:
            raise BadRequest(f"The request body is not valid gzip: {error}.") from error
        return pieces

    def end(self) -> None:
        if self._has_data and not self._inner.eof:
            raise BadRequest("The gzip request body is incomplete.")


class _ZstdDecompressor:
    def __init__(self) -> None:
        self._inner = self._new()
        self._has_data = False

    @staticmethod
    def _new() -> "zstandard.ZstdDecompressionObj":
        return zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES_MAX).decompressobj()

    def feed(self, data: bytes) -> list[bytes]:
        pieces: list[bytes] = []
        try:
            for start in range(0, len(data), ZSTD_STEP_BYTES):
                step = data[start : start + ZSTD_STEP_BYTES]
                while step:
                    if self._inner.eof:
                        self._inner = self._new()
                    self._has_data = True
                    piece = self._inner.decompress(step)
                    if piece:
                        pieces.append(piece)
                    step = self._inner.unused_data
        except zstandard.ZstdError as error:
            raise BadRequest(f"The request body is not valid zstd: {error}.") from error
        return pieces

    def end(self) -> None:
        if self._has_data and not self._inner.eof:
            raise BadRequest("The zstd request body is incomplete.")


_DECOMPRESSORS: Final[dict[bytes, Callable[[], Decompressor]]] = {
    b"gzip": _GzipDecompressor,
    b"x-gzip": _GzipDecompressor,
    b"zstd": _ZstdDecompressor,
}


def decompressed(receive: Receive, encoding: bytes) -> Receive:
    """`receive` that decompresses the body. `encoding` is the Content-Encoding header. Raises UnsupportedMedia."""
    names = [name.strip().lower() for name in encoding.split(b",")]
    names = [name for name in names if name not in (b"", b"identity")]
    if not names:
        return receive
    if len(names) > 1 or names[0] not in _DECOMPRESSORS:
        raise UnsupportedMedia(f"Content-Encoding must be gzip or zstd, not {encoding.decode('latin-1')[:60]}.")
    decompressor = _DECOMPRESSORS[names[0]]()
    pieces: list[bytes] = []
    rest = b""
    is_received = False

    async def next_piece() -> Message:
        nonlocal pieces, rest, is_received
        while True:
            if pieces:
                piece = pieces.pop(0)
                return {"type": "http.request", "body": piece, "more_body": bool(pieces or rest) or not is_received}
            if rest:
                # One step per call: a reader that stops does not pay for the rest.
                step, rest = rest[:ZSTD_STEP_BYTES], rest[ZSTD_STEP_BYTES:]
                pieces = decompressor.feed(step)
                continue
            if is_received:
                decompressor.end()
                return {"type": "http.request", "body": b"", "more_body": False}
            message = await receive()
            if message["type"] != "http.request":
                return message
            rest = message.get("body", b"")
            is_received = not message.get("more_body", False)

    is_finished = False

    async def receive_decompressed() -> Message:
        nonlocal is_finished
        if is_finished:
            return await receive()
        message = await next_piece()
        if message["type"] == "http.request" and not message["more_body"]:
            decompressor.end()
            is_finished = True
        return message

    return receive_decompressed


def negotiate_encoding(accept_encoding: bytes) -> bytes | None:
    """gzip or zstd, whichever has the higher weight in the Accept-Encoding header. None if it allows neither."""
    best: tuple[float, bytes] | None = None
    for part in accept_encoding.lower().split(b","):
        name, _, parameters = part.partition(b";")
        name = name.strip()
        if name not in (b"gzip", b"zstd"):
            continue
        weight = 1.0
        if b"q=" in parameters:
            try:
                weight = float(parameters.partition(b"q=")[2].strip())
            except ValueError:
                weight = 0.0
        if weight > 0 and (best is None or weight > best[0] or (weight == best[0] and name == b"zstd")):
            best = (weight, name)
    return best[1] if best is not None else None


class _Compressor:
    def __init__(self, encoding: bytes) -> None:
        self._gzip = zlib.compressobj(5, zlib.DEFLATED, _GZIP_WINDOW) if encoding == b"gzip" else None
        self._zstd = zstandard.ZstdCompressor(level=3).compressobj() if encoding == b"zstd" else None

    def feed(self, data: bytes, *, last: bool) -> bytes:
        """Flushes after each call, so that clients of a stream get every piece at once."""
        if self._gzip is not None:
            head = self._gzip.compress(data)
            return head + self._gzip.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
        assert self._zstd is not None
        head = self._zstd.compress(data)
        finish = zstandard.COMPRESSOBJ_FLUSH_FINISH if last else zstandard.COMPRESSOBJ_FLUSH_BLOCK
        return head + self._zstd.flush(finish)


def compressed(send: Send, scope: Scope, encoding: bytes) -> Send:
    """`send` that compresses response bodies, except small ones and media types that do not compress well."""
    start: Message | None = None
    compressor: _Compressor | None = None

    async def send_compressed(message: Message) -> None:
        nonlocal start, compressor
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            length = next((int(value) for name, value in headers if name.lower() == b"content-length"), None)
            is_large = length is None or length >= COMPRESSED_BYTES_MIN
            if is_large and scope["method"] != "HEAD" and _is_compressible(message["status"], headers):
                compressor = _Compressor(encoding)
                headers = [(name, value) for name, value in headers if name.lower() != b"content-length"]
                headers.append((b"content-encoding", encoding))
            headers.append((b"vary", b"accept-encoding"))
            message = {**message, "headers": headers}
            if compressor is not None and length is not None:
                # Wait for the body, which follows at once, to set the new length. A stream has no length.
                start = message
            else:
                await send(message)
            return
        if message["type"] != "http.response.body":
            await send(message)
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if compressor is not None and (body or not more):
            body = compressor.feed(body, last=not more)
        if start is not None:
            if not more:
                start["headers"].append((b"content-length", str(len(body)).encode()))
            first, start = start, None
            await send(first)
        await send({"type": "http.response.body", "body": body, "more_body": more})

    return send_compressed


def _is_compressible(status: int, headers: list[tuple[bytes, bytes]]) -> bool:
    if status < 200 or status in (204, 206, 304):
        return False
    media_type = b""
    for name, value in headers:
        if name.lower() == b"content-encoding":
            return False
        if name.lower() == b"content-type":
            media_type = value.lower()
    return any(kind in media_type for kind in _COMPRESSIBLE)
