"""Addresses of brokers as people type them, and what is wrong with one that nobody answers at."""

import asyncio
import os
import re
from dataclasses import dataclass

from headgate.gateway.kafka.errors import BadAddress

DEFAULT_PORT = 9092

# Only asked once the client has given up: just long enough to see a refusal.
probe_seconds_max = 2.0

_ADDRESS = re.compile(r"(?:\[(?P<bracketed>[0-9a-fA-F:.%]+)\]|(?P<host>[^\s:\[\]/,]+))(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int


def addresses_of(text: str) -> list[Address]:
    """At least one. Raises BadAddress."""
    found = []
    for part in text.split(","):
        match = _ADDRESS.fullmatch(part.strip())
        port = int(match["port"] or DEFAULT_PORT) if match else 0
        if match is None or not 0 < port <= 65535:
            raise BadAddress(text)
        found.append(Address(match["bracketed"] or match["host"], port))
    return found


async def why_unreachable(address: Address) -> str:
    """For eyes: what a plain connection meets."""
    try:
        async with asyncio.timeout(probe_seconds_max):
            _, writer = await asyncio.open_connection(address.host, address.port)
    except TimeoutError:
        return "no answer"
    except OSError as error:
        # asyncio's own text names the address again; those of name look-ups have negative numbers.
        return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
    writer.close()
    return "something listens there, but it does not answer as a Kafka broker"
