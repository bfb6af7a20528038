"""Content-Encoding both ways: gzip and zstd request bodies opened, answers closed, for every route alike (RFC 9110).

What a few bytes can become is bounded at each step, so that a body made to burst costs no more memory than an honest
one; how large a body may be in all is said by whoever reads it.
"""

import zlib
from collections.abc import Callable
from typing import Final, Protocol

import zstandard

from headgate.proxy.api.answers import Message, Receive, Scope, Send
from headgate.proxy.errors import BadRequest, UnsupportedMedia

# The largest piece that one step yields.
piece_bytes_max: Final = 1024 * 1024
# A zstd block of four bytes can stand for 128 KiB: so few bytes at a time become 16 MiB at most.
zstd_step_bytes: Final = 512
# RFC 9659: what an encoder for the web may ask its decoder to keep.
zstd_window_bytes_max: Final = 8 * 1024 * 1024
# Below it, the headers that say so cost more than is won.
compressed_from_bytes: Final = 1024

_GZIP_WINDOW: Final = 31
_COMPRESSIBLE: Final = (b"json", b"text/", b"ndjson", b"yaml")


class Opener(Protocol):
    def feed(self, data: bytes) -> list[bytes]:
        """What `data` stands for, in pieces. Raises BadRequest."""
        ...

    def end(self) -> None:
        """No more comes. Raises BadRequest when the stream is not whole."""
        ...


class _Gunzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(_GZIP_WINDOW)
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        pieces: list[bytes] = []
        try:
            while data:
                if self._inner.eof:
                    self._inner = zlib.decompressobj(_GZIP_WINDOW)
                self._begun = True
                piece = self._inner.decompress(data, piece_bytes_max)
                if piece:
                    pieces.append(piece)
                data = self._inner.unconsumed_tail or self._inner.unused_data
        except zlib.error as error:
            raise BadRequest(f"The body is not gzip: {error}.") from error
        return pieces

    def end(self) -> None:
        if self._begun and not self._inner.eof:
            raise BadRequest("The gzip body was cut off.")


class _Unzstd:
    def __init__(self) -> None:
        self._inner = self._new()
        self._begun = False

    @staticmethod
    def _new() -> "zstandard.ZstdDecompressionObj":
        return zstandard.ZstdDecompressor(max_window_size=zstd_window_bytes_max).decompressobj()

    def feed(self, data: bytes) -> list[bytes]:
        pieces: list[bytes] = []
        try:
            for start in range(0, len(data), zstd_step_bytes):
                step = data[start : start + zstd_step_bytes]
                while step:
                    if self._inner.eof:
                        self._inner = self._new()
                    self._begun = True
                    piece = self._inner.decompress(step)
                    if piece:
                        pieces.append(piece)
                    step = self._inner.unused_data
        except zstandard.ZstdError as error:
            raise BadRequest(f"The body is not zstd: {error}.") from error
        return pieces

    def end(self) -> None:
        if self._begun and not self._inner.eof:
            raise BadRequest("The zstd body was cut off.")


_OPENERS: Final[dict[bytes, Callable[[], Opener]]] = {b"gzip": _Gunzip, b"x-gzip": _Gunzip, b"zstd": _Unzstd}


def opened(receive: Receive, encoding: bytes) -> Receive:
    """`receive`, with bodies as they were before they were encoded. Raises UnsupportedMedia."""
    names = [name.strip().lower() for name in encoding.split(b",")]
    names = [name for name in names if name not in (b"", b"identity")]
    if not names:
        return receive
    if len(names) > 1 or names[0] not in _OPENERS:
        raise UnsupportedMedia(f"Content-Encoding must be gzip or zstd, not {encoding.decode('latin-1')[:60]}.")
    opener = _OPENERS[names[0]]()
    pieces: list[bytes] = []
    rest = b""
    ended = False

    async def open_next() -> Message:
        nonlocal pieces, rest, ended
        while True:
            if pieces:
                piece = pieces.pop(0)
                return {"type": "http.request", "body": piece, "more_body": bool(pieces or rest) or not ended}
            if rest:
                # A step at a time: what is not asked for is not opened.
                step, rest = rest[:zstd_step_bytes], rest[zstd_step_bytes:]
                pieces = opener.feed(step)
                continue
            if ended:
                opener.end()
                return {"type": "http.request", "body": b"", "more_body": False}
            message = await receive()
            if message["type"] != "http.request":
                return message
            rest = message.get("body", b"")
            ended = not message.get("more_body", False)

    finished = False

    async def receive_opened() -> Message:
        nonlocal finished
        if finished:
            return await receive()
        message = await open_next()
        if message["type"] == "http.request" and not message["more_body"]:
            opener.end()
            finished = True
        return message

    return receive_opened


def wanted(accept_encoding: bytes) -> bytes | None:
    """The encoding that a client takes and we have, the more liked one first; None for none."""
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


class _Closer:
    """One answer, encoded as it goes."""

    def __init__(self, name: bytes) -> None:
        self._gzip = zlib.compressobj(5, zlib.DEFLATED, _GZIP_WINDOW) if name == b"gzip" else None
        self._zstd = zstandard.ZstdCompressor(level=3).compressobj() if name == b"zstd" else None

    def feed(self, data: bytes, *, last: bool) -> bytes:
        """Everything so far can be read at once: streams wait for nobody."""
        if self._gzip is not None:
            head = self._gzip.compress(data)
            return head + self._gzip.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
        assert self._zstd is not None
        head = self._zstd.compress(data)
        finish = zstandard.COMPRESSOBJ_FLUSH_FINISH if last else zstandard.COMPRESSOBJ_FLUSH_BLOCK
        return head + self._zstd.flush(finish)


def closed(send: Send, scope: Scope, name: bytes) -> Send:
    """`send`, with bodies encoded where it pays."""
    start: Message | None = None
    closer: _Closer | None = None

    async def send_closed(message: Message) -> None:
        nonlocal start, closer
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            length = next((int(value) for field, value in headers if field.lower() == b"content-length"), None)
            is_worth_it = length is None or length >= compressed_from_bytes
            if is_worth_it and scope["method"] != "HEAD" and _can_be_closed(message["status"], headers):
                closer = _Closer(name)
                headers = [(field, value) for field, value in headers if field.lower() != b"content-length"]
                headers.append((b"content-encoding", name))
            headers.append((b"vary", b"accept-encoding"))
            message = {**message, "headers": headers}
            if closer is not None and length is not None:
                # The new length is known with the body, which follows at once; a stream's head does not wait for it.
                start = message
            else:
                await send(message)
            return
        if message["type"] != "http.response.body":
            await send(message)
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if closer is not None and (body or not more):
            body = closer.feed(body, last=not more)
        if start is not None:
            if not more:
                start["headers"].append((b"content-length", str(len(body)).encode()))
            first, start = start, None
            await send(first)
        await send({"type": "http.response.body", "body": body, "more_body": more})

    return send_closed


def _can_be_closed(status: int, headers: list[tuple[bytes, bytes]]) -> bool:
    if status < 200 or status in (204, 206, 304):
        return False
    media = b""
    for field, value in headers:
        name = field.lower()
        if name == b"content-encoding":
            return False
        if name == b"content-type":
            media = value.lower()
    return any(kind in media for kind in _COMPRESSIBLE)
