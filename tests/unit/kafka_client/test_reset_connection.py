"""Requests over a connection that the broker has just reset. The servers use uvloop."""

import asyncio
import socket
import struct
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop
from aiokafka import errors as kafka
from aiokafka.client import ConnectionGroup
from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol.metadata import MetadataRequest

from headgate.kafka_client.aiokafka_internals import MetadataClient

METADATA_KEY = 3
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: on, for zero seconds. Closing the socket then sends RST instead of FIN."""

ITERATIONS = 3
"""Iterations of the event loop in which uvloop calls `connection_lost` and then closes the transport."""


class DelayedConnection(AIOKafkaConnection):
    """A connection whose reader never runs. In production, it runs one iteration of the event loop later."""

    async def _do_version_lookup(self) -> None:
        self._versions = {METADATA_KEY: (0, 5)}

    def _create_reader_task(self) -> "asyncio.Future[None]":
        return asyncio.get_running_loop().create_future()


def test_a_request_over_a_connection_that_was_reset_raises_an_error_of_kafka() -> None:
    async def scenario() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        host, port = listener.getsockname()
        make: Any = MetadataClient
        client = make()
        client.cluster.update_metadata(
            SimpleNamespace(API_VERSION=5, brokers=[(1, host, port, None)], controller_id=1, topics=[])
        )
        connection: Any = DelayedConnection(host, port)  # type: ignore[no-untyped-call]
        await connection.connect()
        client._conns[1, ConnectionGroup.DEFAULT] = connection
        accepted, _ = listener.accept()
        in_flight = connection.send(MetadataRequest([]))
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        accepted.close()
        listener.close()
        while not connection._writer.transport.is_closing():  # noqa: ASYNC110 - uvloop has no event for this state
            await asyncio.sleep(0)
        for _ in range(ITERATIONS):
            await asyncio.sleep(0)
        with pytest.raises(kafka.NodeNotReadyError):
            await client.send(1, MetadataRequest([]))
        with pytest.raises(kafka.KafkaConnectionError):
            await in_flight
        await client.close()

    async def bounded() -> None:
        await asyncio.wait_for(scenario(), 20)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(bounded())
