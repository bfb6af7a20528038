"""How many things one request may name, for the APIs of groups.

A frame of `socket.request.max.bytes` can name tens of millions of groups or partitions in a few bytes each, and the
answer is many times larger. Answering holds up everyone else, some microseconds for each item. So there is a bound far
above what clients send (Java's tools describe all groups of a broker at once). Past it stands INVALID_REQUEST where
the response has a place for it, and otherwise the end of the connection.
"""

from headgate.broker.protocol.outcomes import Disconnect

REQUEST_ITEMS_MAX = 100_000


def refuse_items(count: int, what: str) -> Disconnect | None:
    if count <= REQUEST_ITEMS_MAX:
        return None
    return Disconnect(f"a request names {count} {what}; the most is {REQUEST_ITEMS_MAX}")
