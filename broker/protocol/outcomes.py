"""Outcomes of a request that have no response in the protocol."""


class NoReply:
    """The request has succeeded and gets no response (Produce with acks=0)."""

    __slots__ = ()


class Disconnect:
    """The protocol has no response for this error. The server logs the reason and closes the connection."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


NO_REPLY = NoReply()
