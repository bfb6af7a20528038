"""`headgate topic export` and `headgate topic import`."""

from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from headgate.gateway.cli.errors import AnswerIsNo, CommandError, Unreachable
from headgate.gateway.cli.options import (
    DEFAULT_BOOTSTRAP_SERVER,
    DEFAULT_REGISTRY_URL,
    BootstrapServer,
    Json,
    KafkaConfig,
    RegistryUrl,
    RuleAction,
    TopicName,
)
from headgate.gateway.cli.output import Progress, print_json, say
from headgate.gateway.transfer.export_format import ExportFormat

if TYPE_CHECKING:
    from headgate.gateway.transfer.export_files import Output
    from headgate.gateway.transfer.manifest import Manifest
    from headgate.serdes import AsyncRegistryClient
    from headgate.spark_udfs.topic_table import TopicTable

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the export.", file_okay=False)]


def export(
    topic: TopicName,
    folder: Folder,
    kind: Annotated[
        ExportFormat, typer.Option("--format", "-f", help="The format of the files.")
    ] = ExportFormat.NDJSON,
    raw: Annotated[
        bool, typer.Option("--raw", help="Do not decode: keys and values stay as they are, so the import is exact.")
    ] = False,
    subject: Annotated[
        str | None,
        typer.Option(metavar="SUBJECT", help="The subject of Parquet and Avro values [default: TOPIC-value]."),
    ] = None,
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Write all records of a topic to files. An interrupted export continues where it stopped.

    Run it again to add the records that have arrived since.
    """
    import asyncio

    from headgate.gateway.transfer.manifest import BadManifest
    from headgate.spark_udfs.driver.reader_choice import ReaderError
    from headgate.spark_udfs.extra import MissingExtra
    from headgate.spark_udfs.source.errors import BrokerUnreachable, SourceError, TopicMissing

    subject = subject or f"{topic}-value"
    try:
        manifest = asyncio.run(_export(topic, folder, kind, raw, subject, registry, bootstrap_server, kafka_config))
    except MissingExtra as error:
        raise CommandError("the export needs pyarrow", next_step="pip install 'headgate[arrow]'") from error
    except TopicMissing as error:
        raise AnswerIsNo(f"there is no topic {topic}", next_step="headgate topic list shows all topics") from error
    except BrokerUnreachable as error:
        raise Unreachable(f"no Kafka broker responded at {bootstrap_server}", why=str(error)) from error
    except ReaderError as error:
        raise CommandError(
            "no schema", why=str(error), next_step="--subject names another subject, --raw needs none"
        ) from error
    except (SourceError, BadManifest, OSError) as error:
        raise CommandError(
            "the export failed", why=str(error), next_step="run the command again to continue"
        ) from error
    records, poison = (sum(getattr(file, name) for file in manifest.files) for name in ("records", "poison"))
    if json:
        print_json({"topic": topic, "files": len(manifest.files), "records": records, "poison": poison})
    else:
        say(f"{records:,} records of {topic} are in {folder}" + (f", {poison:,} of them poison" if poison else ""))


async def _export(
    topic: str,
    folder: Path,
    kind: ExportFormat,
    raw: bool,
    subject: str,
    registry_url: str,
    bootstrap_server: str,
    kafka_config: str | None,
) -> "Manifest":
    from headgate.gateway.cli.registry_client import open_registry
    from headgate.gateway.transfer.exporting import Export, prepare
    from headgate.kafka_client.properties import load_properties
    from headgate.spark_udfs import read_topic

    decodes = kind is ExportFormat.PARQUET and not raw
    properties = load_properties(kafka_config) if kafka_config else {}
    table = read_topic(
        topic,
        bootstrap_servers=bootstrap_server,
        registry=registry_url if decodes else None,
        subject=subject if decodes else None,
        raw=not decodes,
        headers=True,
        options={f"kafka.{name}": text for name, text in properties.items()},
    )
    partitions = len(table.by_partition({}))
    manifest = prepare(folder, topic, kind, raw=raw, partitions=partitions)
    async with open_registry(registry_url, RuleAction.FAIL) as registry:

        async def opened(file: IO[bytes]) -> "Output":
            return await _output(file, kind, table, registry, subject, raw=raw)

        with Progress("offsets read", table.offset_count) as progress:
            await Export(folder, manifest, opened, progress.update).run(table)
    return manifest


async def _output(
    file: IO[bytes],
    kind: ExportFormat,
    table: "TopicTable",
    registry: "AsyncRegistryClient",
    subject: str,
    *,
    raw: bool,
) -> "Output":
    import json as json_

    from headgate.gateway.records.decoding import RecordDecoder
    from headgate.gateway.records.payload_format import AUTO, RAW, PayloadFormats
    from headgate.gateway.transfer.export_files import AvroOutput, NdjsonOutput, ParquetOutput
    from headgate.serdes import AsyncDeserializer, DeserializerOptions, RegistryClientError

    if kind is ExportFormat.PARQUET:
        return ParquetOutput(file, table.schema)
    if kind is ExportFormat.NDJSON:
        form = RAW if raw else AUTO
        return NdjsonOutput(file, RecordDecoder(PayloadFormats(form, form), lambda: registry))
    if raw:
        return AvroOutput(file)
    try:
        latest = await registry.latest(subject)
    except RegistryClientError as error:
        raise CommandError(f"no schema of {subject}", why=str(error), next_step="--raw needs no schema") from error
    if latest.definition.type.value != "AVRO" or latest.definition.references:
        raise CommandError(
            f"{subject} is not one Avro schema",
            why="an Avro container needs it",
            next_step="use --format ndjson or --raw",
        )
    options = DeserializerOptions(reader=latest.definition)
    return AvroOutput(file, json_.loads(latest.definition.text), AsyncDeserializer(registry, options))


def import_(
    topic: TopicName,
    folder: Folder,
    keep_partitions: Annotated[
        bool, typer.Option(help="Keep the partition of each record, or choose it by key.")
    ] = True,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Send all records again, also those of an earlier import.")
    ] = False,
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Send the records of an export to a topic. An interrupted import continues where it stopped.

    The records of a partition stay in order. After an interruption, a few records can be sent twice.
    """
    import asyncio

    from headgate.gateway.transfer.manifest import BadManifest, load

    try:
        manifest = load(folder)
        if manifest is None:
            raise CommandError(f"{folder} contains no export", next_step="headgate topic export creates one")
        sent = asyncio.run(
            _import(topic, folder, manifest, keep_partitions, from_start, registry, bootstrap_server, kafka_config)
        )
    except (BadManifest, OSError) as error:
        raise CommandError(
            "the import failed", why=str(error), next_step="run the command again to continue"
        ) from error
    total = sum(file.records for file in manifest.files)
    if json:
        print_json({"topic": topic, "files": len(manifest.files), "records": total, "sent": sent})
    else:
        say(f"{sent:,} of {total:,} records sent to {topic}" + ("" if sent else "; the others were sent before"))


async def _import(
    topic: str,
    folder: Path,
    manifest: "Manifest",
    keep_partitions: bool,
    from_start: bool,
    registry_url: str,
    bootstrap_server: str,
    kafka_config: str | None,
) -> int:
    from headgate.gateway.cli.faults import explained_schema
    from headgate.gateway.cli.registry_client import open_registry
    from headgate.gateway.kafka.cluster import connect, connection_options
    from headgate.gateway.kafka.producing import topic_to_produce_to
    from headgate.gateway.records.encoding import RecordEncoder
    from headgate.gateway.transfer.importing import BadRow, Import, ImportProgress
    from headgate.proxy.errors import ProxyError

    connection = connection_options(bootstrap_server, kafka_config)
    async with connect(connection) as cluster:
        target = await topic_to_produce_to(cluster, topic)
    if keep_partitions and len(target.partitions) < manifest.partitions:
        raise CommandError(
            f"{topic} has {len(target.partitions)} partitions and the export {manifest.partitions}",
            next_step="create it with more partitions, or add --no-keep-partitions",
        )
    done = ImportProgress(folder, f"{connection.address} {topic}")
    if from_start:
        done.acknowledged.clear()
    total = sum(file.records for file in manifest.files)
    async with open_registry(registry_url, RuleAction.FAIL) as registry:
        encoder = RecordEncoder(registry, topic, None, None, native_logical=False)
        with Progress("records sent", total) as progress:
            work = Import(connection, target, encoder, done, progress.update, keep_partitions=keep_partitions)
            try:
                await work.run(folder, manifest)
            except ProxyError as error:
                raise explained_schema(error) from error
            except BadRow as error:
                raise CommandError(f"{error.name} cannot be sent", why=str(error)) from error
    return work.sent
