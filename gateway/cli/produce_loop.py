"""Sends lines as records, for `headgate produce`."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from headgate.gateway.cli.errors import CommandError
from headgate.gateway.cli.faults import explained_schema
from headgate.gateway.cli.input_format import RowFormat
from headgate.gateway.cli.options import RuleAction
from headgate.gateway.cli.output import Progress, print_json_line, say
from headgate.gateway.cli.produce_input import open_rows
from headgate.gateway.cli.registry_client import open_registry
from headgate.gateway.kafka.cluster import connect
from headgate.gateway.kafka.producing import Receipt, Sender, topic_to_produce_to
from headgate.gateway.records.encoding import PayloadSchema, RecordEncoder
from headgate.gateway.records.input import InputRow, LineFormat
from headgate.gateway.records.json_lines import BadRecord
from headgate.kafka_client.errors import KafkaClientError, PartitionNotFound
from headgate.kafka_client.options import ConnectionOptions
from headgate.proxy.errors import ProxyError


class ProduceLoop:
    def __init__(
        self,
        connection: ConnectionOptions,
        topic: str,
        acks: str,
        compression: str,
        *,
        registry_url: str,
        native_logical: bool,
        rules: RuleAction,
        key_schema: PayloadSchema | None,
        value_schema: PayloadSchema | None,
        dead_letter: Path | None,
        print_receipts: bool,
        rows: RowFormat,
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._acks = acks
        self._compression = compression
        self._registry_url = registry_url
        self._native_logical = native_logical
        self._rules = rules
        self._key_schema = key_schema
        self._value_schema = value_schema
        self._dead_letter = dead_letter
        self._print_receipts = print_receipts
        self._rows = rows
        self._sent = 0
        self._rejected = 0
        self._is_single = False

    def run(self, line_format: LineFormat, files: list[Path], value: bytes | None) -> None:
        """Send the value, or the lines of the files or standard input.

        Raises KafkaClientError, CommandError.
        """
        self._is_single = value is not None
        asyncio.run(self._run(line_format, files, value))

    async def _run(self, line_format: LineFormat, files: list[Path], value: bytes | None) -> None:
        # Connects to the registry only if a record needs a schema.
        async with open_registry(self._registry_url, self._rules) as registry:
            encoder = RecordEncoder(
                registry, self._topic, self._key_schema, self._value_schema, native_logical=self._native_logical
            )
            try:
                await encoder.prepare()
            except ProxyError as error:
                raise explained_schema(error) from error
            async with connect(self._connection) as cluster:
                topic = await topic_to_produce_to(cluster, self._topic)
            try:
                with Progress("records sent") as progress, ExitStack() as stack:
                    rejects = None
                    if self._dead_letter is not None:
                        rejects = stack.enter_context(self._dead_letter.open("ab"))
                    async with Sender(
                        self._connection,
                        topic,
                        acks=self._acks,
                        compression=self._compression,
                        on_receipt=self._on_receipt,
                    ) as sender:
                        rows = await open_rows(self._rows, encoder, line_format, files, value)
                        await self._send_all(sender, encoder, rows, rejects, progress)
            except BadRecord as error:
                say(f"{self._sent} records were sent before the failure")
                raise CommandError("the input cannot be read", why=str(error)) from error
            except (CommandError, KafkaClientError):
                say(f"{self._sent} records were sent before the failure")
                raise
        if self._rejected:
            raise CommandError(
                f"{self._rejected} of {self._sent + self._rejected} records were rejected",
                why="the messages above name each line",
                next_step=f"correct the lines in {self._dead_letter} and send them again",
            )
        if sys.stderr.isatty():
            say(f"{self._sent} record{'' if self._sent == 1 else 's'} sent to {self._topic}")

    async def _send_all(
        self,
        sender: Sender,
        encoder: RecordEncoder,
        rows: AsyncIterator[InputRow],
        rejects: IO[bytes] | None,
        progress: Progress,
    ) -> None:
        async for row in rows:
            record = row.record
            try:
                if isinstance(record, BadRecord):
                    raise record
                if encoder.applies_to(record):
                    record = await encoder.encode(record, has_value=not row.is_encoded)
                await sender.send(record)
            except ProxyError as error:
                raise explained_schema(error) from error
            except (BadRecord, PartitionNotFound) as error:
                if rejects is None:
                    # Earlier records are valid: send them.
                    await sender.flush()
                    where = "the record" if self._is_single else row.name
                    raise CommandError(f"{where} cannot be sent", why=str(error)) from error
                rejects.write(row.text + b"\n")
                self._rejected += 1
                say(f"{row.name} rejected: {error}")
            progress.update(self._sent)

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
