"""Sends lines as records, for `headgate produce`."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from headgate.gateway.cli.errors import CommandError
from headgate.gateway.cli.output import Progress, print_json_line, say
from headgate.gateway.cli.standard_input import chunks
from headgate.gateway.kafka.cluster import connect
from headgate.gateway.kafka.producing import Receipt, Sender, topic_to_produce_to
from headgate.gateway.records.input import LineFormat, Lines
from headgate.gateway.records.json_lines import BadRecord
from headgate.kafka_client.errors import KafkaClientError, PartitionNotFound
from headgate.kafka_client.options import ConnectionOptions


class ProduceLoop:
    def __init__(
        self, connection: ConnectionOptions, topic: str, acks: str, compression: str, *, print_receipts: bool
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._acks = acks
        self._compression = compression
        self._print_receipts = print_receipts
        self._sent = 0

    def run(self, line_format: LineFormat, files: list[Path], value: bytes | None) -> None:
        """Send the value, or the lines of the files or standard input.

        Raises KafkaClientError, ProxyError, CommandError.
        """
        asyncio.run(self._run(line_format, files, value))

    async def _run(self, line_format: LineFormat, files: list[Path], value: bytes | None) -> None:
        async with connect(self._connection) as cluster:
            topic = await topic_to_produce_to(cluster, self._topic)
        line_number = 0
        try:
            with Progress("records sent") as progress:
                async with Sender(
                    self._connection,
                    topic,
                    acks=self._acks,
                    compression=self._compression,
                    on_receipt=self._on_receipt,
                ) as sender:
                    try:
                        async for line in _lines(files, value):
                            line_number += 1
                            await sender.send(line_format.record(line))
                            progress.update(self._sent)
                    except (BadRecord, PartitionNotFound) as error:
                        # Earlier records are valid: send them.
                        await sender.flush()
                        where = "the record" if value is not None else f"line {line_number}"
                        raise CommandError(f"{where} cannot be sent", why=str(error)) from error
        except (CommandError, KafkaClientError):
            say(f"{self._sent} records were sent before the failure")
            raise
        if sys.stderr.isatty():
            say(f"{self._sent} record{'' if self._sent == 1 else 's'} sent to {self._topic}")

    def _on_receipt(self, receipt: Receipt) -> None:
        self._sent += 1
        if self._print_receipts:
            print_json_line(
                {
                    "topic": receipt.topic,
                    "partition": receipt.partition,
                    "offset": receipt.offset,
                    "timestamp": receipt.timestamp_ms,
                }
            )


async def _lines(files: list[Path], value: bytes | None) -> AsyncIterator[bytes]:
    if value is not None:
        yield value
        return
    lines = Lines()
    async for chunk in chunks(files):
        for line in lines.feed(chunk) if chunk else lines.end():
            yield line
