"""Parses and validates the options of the data source.

Options that Spark's Kafka source also has use the same names. Spark passes names in lower case.
`kafka_client.security` parses the options of TLS and SASL.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.kafka_client.errors import InvalidProperty
from headgate.kafka_client.fetch import Isolation
from headgate.kafka_client.options import PORT_MAX, ConnectionOptions
from headgate.kafka_client.security import SECURITY_PROPERTIES, Security, read_security
from headgate.spark_udfs.source.decoded import DECODING_OPTIONS, DecodingOptions, read_decoding_options
from headgate.spark_udfs.source.errors import BadOption
from headgate.spark_udfs.source.positions import Edge, Position, read_position
from headgate.spark_udfs.source.topics import PATTERN, Selection, check_topic, read_selection
from headgate.spark_udfs.spec.registry_options import OPTION_NAMES as REGISTRY_OPTIONS

INT_32_MAX = 2**31 - 1

FETCH_BYTES_DEFAULT = 4 * 1024 * 1024
"""Bytes of one fetch: about 40,000 small records, or two Arrow batches. This is four times Kafka's default.

A task holds two fetches: it decodes one while the other is in flight."""
FETCH_WAIT_MS_DEFAULT = 500
REQUEST_TIMEOUT_MS_DEFAULT = 30_000
RETRY_MS_DEFAULT = 60_000
"""How long to retry during a broker restart or leader election, as `default.api.timeout.ms` of the Java client."""
REQUEST_BYTES_DEFAULT = 1024 * 1024
"""Size of the largest batch to write. Brokers accept 1 MiB by default."""
DELIVERY_MS_DEFAULT = 120_000

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")

PREFIX = "kafka."
"""Prefix of options that are properties of Kafka's clients."""

_CONNECTION = (
    "bootstrap.servers",
    "kafka.bootstrap.servers",
    "kafka.client.id",
    "kafka.request.timeout.ms",
    "kafka.default.api.timeout.ms",
    *(PREFIX + name for name in SECURITY_PROPERTIES),
)
_READ = (
    *_CONNECTION,
    "subscribe",
    "subscribePattern",
    PATTERN,
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "checkTopicIds",
    "includeHeaders",
    "columns",
    "flat",
    "kafka.isolation.level",
    "kafka.max.partition.fetch.bytes",
    "kafka.fetch.max.wait.ms",
    *DECODING_OPTIONS,
    *REGISTRY_OPTIONS,
)
_WRITE = (
    *_CONNECTION,
    "topic",
    "kafka.acks",
    "kafka.enable.idempotence",
    "kafka.compression.type",
    "kafka.max.request.size",
    "kafka.delivery.timeout.ms",
)
_SPARKS = ("checkpointLocation", "queryName", "includeHeaders")
"""Options that Spark adds to the options of a sink, and one that Spark's Kafka source and sink share."""

_WHY_NOT = {
    "path": "this source has no path; name the topics with subscribe",
    "topic": "topic is where to write; to read, use subscribe",
    "kafka.group.id": "this source reads without a consumer group, so there is none to name; leave it out",
    "groupidprefix": "this source reads without a consumer group, so there is none to name; leave it out",
    "kafka.auto.offset.reset": "use startingOffsets: earliest or latest",
    "kafka.enable.auto.commit": "offsets are kept in Spark's checkpoint, never in Kafka; leave it out",
    "minoffsetspertrigger": "use a longer trigger interval, such as trigger(processingTime='1 minute')",
    "maxtriggerdelay": "use a longer trigger interval, such as trigger(processingTime='1 minute')",
    "kafka.key.deserializer": "keys come as bytes; set key.subject to have them decoded, or cast the column",
    "kafka.value.deserializer": "values come as bytes; set subject to have them decoded, or cast the column",
    "kafka.key.serializer": "keys are written as the bytes of the column; cast it",
    "kafka.value.serializer": "values are written as the bytes of the column; cast or encode it",
}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    connection: ConnectionOptions
    selection: Selection
    start: Position
    end: Position
    records_per_trigger_max: int | None = None
    partitions_min: int | None = None
    records_per_partition_max: int | None = None
    is_loss_fatal: bool = True
    checks_topic_ids: bool = True
    """Whether a stream detects re-created topics by the topic ids in its checkpoint."""
    has_headers: bool = False
    columns: tuple[str, ...] | None = None
    is_flat: bool = False
    """Whether fields of the decoded value become top-level columns. Spark then does not have to extract them."""
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    fetch_bytes: int = FETCH_BYTES_DEFAULT
    fetch_wait_ms: int = FETCH_WAIT_MS_DEFAULT
    decoding: DecodingOptions | None = None
    registry: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The options of the registry, unparsed."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    connection: ConnectionOptions
    topic: str | None = None
    compression: str | None = None
    request_bytes_max: int = REQUEST_BYTES_DEFAULT
    delivery_ms: int = DELIVERY_MS_DEFAULT


def read_options(given: Mapping[str, str], *, is_streaming: bool) -> ReadOptions:
    """Raises `BadOption`."""
    options = _known(given, _READ, "read")
    return ReadOptions(
        connection=_connection(options),
        selection=read_selection(options),
        start=read_position(Edge.START, options, is_streaming=is_streaming),
        end=read_position(Edge.END, options, is_streaming=is_streaming),
        records_per_trigger_max=_number(options, "maxOffsetsPerTrigger"),
        partitions_min=_number(options, "minPartitions", most=INT_32_MAX),
        records_per_partition_max=_number(options, "maxRecordsPerPartition"),
        is_loss_fatal=_flag(options, "failOnDataLoss", default=True),
        checks_topic_ids=_flag(options, "checkTopicIds", default=True),
        has_headers=_flag(options, "includeHeaders", default=False),
        columns=_columns(options),
        is_flat=_flag(options, "flat", default=False),
        isolation=_isolation(options),
        fetch_bytes=_number(options, "kafka.max.partition.fetch.bytes", most=INT_32_MAX) or FETCH_BYTES_DEFAULT,
        fetch_wait_ms=_number(options, "kafka.fetch.max.wait.ms", most=INT_32_MAX) or FETCH_WAIT_MS_DEFAULT,
        decoding=read_decoding_options(options),
        registry=tuple(sorted((name, text) for name, text in options.items() if name.startswith("registry."))),
    )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Raises `BadOption`."""
    options = _known(given, (*_WRITE, *_SPARKS), "write")
    acks = options.get("kafka.acks", "all").strip().lower()
    if acks not in ("all", "-1"):
        raise BadOption("kafka.acks", f"records are written with acks=all, never {acks[:60]!r}")
    if not _flag(options, "kafka.enable.idempotence", default=True):
        raise BadOption("kafka.enable.idempotence", "records are always written with an idempotent producer")
    topic = options.get("topic")
    if topic is not None:
        topic = topic.strip()
        check_topic("topic", topic)
    compression = options.get("kafka.compression.type", "none").strip().lower()
    if compression not in COMPRESSIONS:
        raise BadOption("kafka.compression.type", f"it must be one of {', '.join(COMPRESSIONS)}")
    return WriteOptions(
        connection=_connection(options),
        topic=topic,
        compression=None if compression == "none" else compression,
        request_bytes_max=_number(options, "kafka.max.request.size", most=INT_32_MAX) or REQUEST_BYTES_DEFAULT,
        delivery_ms=_number(options, "kafka.delivery.timeout.ms", most=INT_32_MAX) or DELIVERY_MS_DEFAULT,
    )


def _known(given: Mapping[str, str], names: tuple[str, ...], use: str) -> dict[str, str]:
    """Returns the options by lower-case name. Raises `BadOption` for unknown names."""
    options = {name.lower(): text for name, text in given.items()}
    known = {name.lower(): name for name in names}
    for name in options:
        if name in known:
            continue
        if name in _WHY_NOT:
            raise BadOption(name, _WHY_NOT[name])
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        hint = f"did you mean {known[close[0]]}?" if close else f"known are {', '.join(names)}"
        raise BadOption(name, f"there is no such option to {use} with; {hint}")
    return options


def _connection(options: Mapping[str, str]) -> ConnectionOptions:
    names = [name for name in ("bootstrap.servers", "kafka.bootstrap.servers") if name in options]
    if not names:
        raise BadOption("bootstrap.servers", "it is needed: the address of a broker, such as localhost:9092")
    if len(names) == 2 and options[names[0]] != options[names[1]]:
        raise BadOption(names[0], "kafka.bootstrap.servers is another address; give one of the two")
    return ConnectionOptions(
        servers=_servers(names[0], options[names[0]]),
        security=_security(options),
        client_id=options.get("kafka.client.id", "headgate-spark"),
        request_timeout_ms=_number(options, "kafka.request.timeout.ms", most=INT_32_MAX) or REQUEST_TIMEOUT_MS_DEFAULT,
        api_timeout_ms=_number(options, "kafka.default.api.timeout.ms", most=INT_32_MAX) or RETRY_MS_DEFAULT,
    )


def _security(options: Mapping[str, str]) -> Security:
    try:
        return read_security(options, PREFIX)
    except InvalidProperty as error:
        raise BadOption(error.name, error.problem) from error


def _servers(name: str, text: str) -> tuple[str, ...]:
    servers = tuple(server.strip() for server in text.split(",") if server.strip())
    if not servers:
        raise BadOption(name, "it is empty; give the address of a broker, such as localhost:9092")
    for server in servers:
        host, colon, port = server.rpartition(":")
        is_port = port.isascii() and port.isdigit() and 0 < int(port[:6]) <= PORT_MAX
        if not colon or not host or not is_port:
            raise BadOption(name, f"{server[:60]!r} is not host:port, such as localhost:9092")
    return servers


def _columns(options: Mapping[str, str]) -> tuple[str, ...] | None:
    if "columns" not in options:
        return None
    columns = tuple(dict.fromkeys(name.strip() for name in options["columns"].split(",") if name.strip()))
    if not columns:
        raise BadOption("columns", "it names no column, such as value,offset")
    return columns


def _isolation(options: Mapping[str, str]) -> Isolation:
    text = options.get("kafka.isolation.level", "read_uncommitted").strip().upper()
    if text not in Isolation.__members__:
        raise BadOption("kafka.isolation.level", f"it must be read_committed or read_uncommitted, not {text[:60]!r}")
    return Isolation[text]


def _number(options: Mapping[str, str], name: str, *, most: int = 2**63 - 1) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    number = text.strip()
    if not number.isascii() or not number.isdigit() or len(number) > 19 or not 0 < int(number) <= most:
        raise BadOption(name, f"it must be a whole number from 1 to {most}, not {text[:60]!r}")
    return int(number)


def _flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name.lower(), str(default)).strip().lower()
    if text not in ("true", "false"):
        raise BadOption(name, f"it must be true or false, not {text[:60]!r}")
    return text == "true"
