"""Request headers that the fast path reads."""

from headgate.web.asgi import Scope


class RequestHeaders:
    """Values of the headers. Empty if a header is absent."""

    __slots__ = ("accept", "accept_encoding", "content_encoding", "content_length", "content_type", "idempotency_key")

    def __init__(self, scope: Scope) -> None:
        self.accept = self.accept_encoding = self.idempotency_key = b""
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
