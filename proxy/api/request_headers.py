"""Request headers that the fast path reads."""

from urllib.parse import parse_qs

from headgate.proxy.api.query import native_logical
from headgate.web.asgi import Scope


class RequestHeaders:
    """Values of the headers. Empty if a header is absent."""

    __slots__ = (
        "accept",
        "accept_encoding",
        "content_encoding",
        "content_length",
        "content_type",
        "idempotency_key",
        "logical",
    )

    def __init__(self, scope: Scope) -> None:
        self.accept = self.accept_encoding = self.idempotency_key = self.logical = b""
        self.content_encoding = self.content_length = self.content_type = b""
        for name, value in scope["headers"]:
            if name == b"content-type":
                self.content_type = value
            elif name == b"content-length":
                self.content_length = value
            elif name == b"accept":
                self.accept = self.accept + b"," + value if self.accept else value
            elif name == b"accept-encoding":
                self.accept_encoding = value
            elif name == b"content-encoding":
                self.content_encoding = self.content_encoding + b"," + value if self.content_encoding else value
            elif name == b"idempotency-key":
                self.idempotency_key = value
            elif name == b"headgate-logical":
                self.logical = value
        if b"logical=" in scope["query_string"]:
            # As text: parse_qs of bytes fails for non-ASCII characters.
            query = parse_qs(scope["query_string"].decode("latin-1"))
            self.logical = query["logical"][-1].encode() if "logical" in query else self.logical

    def wants_native_logical(self, default: str) -> bool:
        """Whether the request has the readable form of Avro's logical types. Raises BadRequest."""
        return native_logical({"logical": self.logical.decode(errors="replace")} if self.logical else {}, {}, default)
