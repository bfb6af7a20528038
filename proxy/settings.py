"""Settings of the proxy. They have Confluent's names where they exist."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Self

from headgate.kafka_client.errors import InvalidProperty
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.properties import load_properties
from headgate.kafka_client.security import SECURITY_PROPERTIES, Security, check_names, read_security
from headgate.serdes.dead_letter import TOPIC_SUFFIX
from headgate.web.settings import InvalidSetting


class UnknownSetting(InvalidSetting):
    """There is no setting with this name, or its value is not valid."""


@dataclass(frozen=True, slots=True)
class ProxySettings:
    bootstrap_servers: str = "127.0.0.1:9092"
    kafka_config: str = ""
    """A file with properties of Kafka's clients (`client.properties`): `security.protocol`, `sasl.*` and `ssl.*`. The
    same properties are accepted as settings, which override the file."""
    security: Security = field(default_factory=Security)
    schema_registry_url: str = "http://127.0.0.1:8081"
    rules: str = "fail"
    """Schemas with rules (ENCRYPT, CEL), which the proxy does not execute. `fail`: writes fail, reads return poison.
    `ignore`: the rules are ignored."""
    advertised_url: str | None = None
    """Base URL of links in responses. Empty: the forwarding headers of trusted proxies, else the Host header."""
    allowed_hosts: str = ""
    """Further host names of the proxy, separated by commas: a load balancer, a container, a service. Requests for other
    names fail (421). `*.intern.example` allows all names of a domain, `*` all names."""
    trusted_proxies: str = ""
    """IP addresses and networks whose Forwarded and X-Forwarded-* headers are used, separated by commas. Workers whose
    `worker.urls` contain IP addresses are trusted without being listed."""

    access_control_allow_origin: str = ""
    """Origins whose pages may send requests and open WebSockets, separated by commas. `*` matches all origins, or any
    part of a name. Empty: only pages of the proxy's own origin."""
    access_control_allow_methods: str = ""
    """Methods for other origins. Empty: all methods of the proxy."""
    access_control_allow_headers: str = ""
    """Headers for other origins. Empty: all headers that the proxy reads."""

    request_body_bytes_max: int = 64 * 1024 * 1024
    """Size of one request body. Streams have no limit."""
    request_bodies_bytes_max: int = 256 * 1024 * 1024
    """Size of all request bodies in memory. Beyond it, requests fail with 429."""
    request_body_timeout_ms: int = 60_000
    """How long no data of a body may arrive. Then the request fails with 408."""
    records_per_request_max: int = 100_000
    produce_batch_maximum_entries: int = 10_000
    """Entries of one `records:batch` request."""
    produce_timeout_ms: int = 20_000
    """How long a record may wait for its acknowledgement, retries included."""
    auto_create_topics: bool = True
    """Whether produce requests ask the broker to create missing topics, as Kafka's producers do. The broker's
    `auto.create.topics.enable` decides."""
    logical_types: str = "avro"
    """JSON form of Avro's logical types if a request names none: `avro` (as in Confluent's REST Proxy) or `native`
    (`"9.99"`, `"2026-11-18T10:15:30.123Z"`)."""
    schema_id_subject_check: bool = True
    """Whether a schema id must be registered under the subject of the topic, as in Confluent's REST Proxy."""
    producer_batch_bytes_max: int = 1_000_000
    """Size of one record batch. Below the brokers' default limit of 1 MiB, with space for the header."""
    producer_pending_bytes_max: int = 64 * 1024 * 1024
    """Size of all records that wait for brokers. Beyond it, requests fail with 429."""
    produce_reports_bytes_max: int = 128 * 1024 * 1024
    """Size of all unread reports of produce streams. Beyond it, the proxy stops reading records from clients with more
    than 256 KiB of unread reports."""
    produce_reports_timeout_ms: int = 60_000
    """How long such a client may read no reports, and any client after its last record. Then it is disconnected."""

    idempotency_topic: str = "__headgate_idempotency"
    """Topic with the results of requests that have an Idempotency-Key, for all workers."""
    idempotency_window_ms: int = 24 * 3600 * 1000
    """How long a repeated request gets the first response."""
    idempotency_keys_max: int = 200_000
    """Keys in memory. Beyond it the oldest keys are evicted before their window ends."""
    rate_limit_requests_per_second: int = 0
    """Requests per client address. A record of a stream counts as a request. 0: no limit."""
    rate_limit_bytes_per_second: int = 0
    """Bytes of request bodies per client address. 0: no limit."""
    rate_limit_burst_seconds: int = 2
    """Size of the token bucket, in seconds of the rate."""
    shutdown_graceful_ms: int = 10_000
    """How long requests in flight may take after a stop signal."""

    consumer_instance_timeout_ms: int = 300_000
    consumer_request_timeout_ms: int = 1_000
    consumer_request_max_bytes: int = 64 * 1024 * 1024
    consumer_instances_max: int = 10_000
    consumer_request_timeout_max_ms: int = 300_000
    """Largest `timeout` of one read. Load balancers close connections that are idle for longer."""
    consumer_replay_bytes_max: int = 256 * 1024 * 1024
    """Size of all last responses that are kept for `?replay=`. The oldest are evicted first."""
    worker_url: str | None = None
    """URL of this worker. One of `worker_urls`."""
    worker_urls: str = ""
    """URLs of all workers, separated by commas. The same list on each worker. Requests for a consumer of another worker
    are forwarded to it, and only to URLs in this list."""
    fetch_batch_decompressed_bytes_max: int = 128 * 1024 * 1024
    """Decompressed size of one record batch. Records beyond it are returned as poison."""
    fetch_record_decompressed_bytes_max: int = 16 * 1024 * 1024
    """Size of one record of a compressed batch. A larger record is returned as poison. A response needs several times
    the memory of its largest record, and the event loop renders a record in one step."""
    read_streams_max: int = 10_000
    streams_bytes_max: int = 256 * 1024 * 1024
    """Memory of all streams and pages. Beyond it new reads wait, pages end early, and clients that read nothing for
    five seconds are disconnected."""
    dead_letter_topic_suffix: str = TOPIC_SUFFIX
    """Suffix of the default dead-letter topic of a topic."""
    dead_letter_scan_records_max: int = 1_000_000
    """Records that a request for dead letters may read."""
    stream_heartbeat_ms: int = 15_000
    """Interval of heartbeats in idle streams, so that load balancers keep the connection open."""
    kafka_request_timeout_ms: int = 10_000
    metadata_max_age_ms: int = 60_000
    """How long cached topic metadata is used. New partitions are detected after this time at the latest."""

    @property
    def connection(self) -> ConnectionOptions:
        return ConnectionOptions(
            tuple(server.strip() for server in self.bootstrap_servers.split(",")),
            self.security,
            client_id="headgate-proxy",
            request_timeout_ms=self.kafka_request_timeout_ms,
            metadata_max_age_ms=self.metadata_max_age_ms,
        )

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """From texts under dotted names, such as `consumer.instance.timeout.ms`. Raises UnknownSetting."""
        known = {field.name: field.type for field in fields(cls) if field.name != "security"}
        changed: dict[str, object] = {"security": _security(given)}
        for name, text in given.items():
            if name in SECURITY_PROPERTIES:
                continue
            attribute = name.replace(".", "_")
            if attribute not in known:
                raise UnknownSetting(f"there is no setting {name}")
            if known[attribute] is int:
                if not text.strip().lstrip("-").isdigit():
                    raise UnknownSetting(f"{name} must be an integer, not {text!r}")
                changed[attribute] = int(text)
            elif known[attribute] is bool:
                if text.strip().lower() not in ("true", "false"):
                    raise UnknownSetting(f"{name} must be true or false, not {text!r}")
                changed[attribute] = text.strip().lower() == "true"
            else:
                changed[attribute] = text
        if changed.get("logical_types", "avro") not in ("avro", "native"):
            raise UnknownSetting(f"logical.types must be avro or native, not {changed['logical_types']!r}")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", str(changed.get("dead_letter_topic_suffix", TOPIC_SUFFIX))):
            raise UnknownSetting(
                "dead.letter.topic.suffix must have 1 to 100 letters, digits, dots, dashes or underscores"
            )
        if changed.get("rules", "fail") not in ("fail", "ignore"):
            raise UnknownSetting(f"rules must be fail or ignore, not {changed['rules']!r}")
        return replace(cls(), **changed)  # type: ignore[arg-type]  # each value is of its field's type


def _security(given: Mapping[str, str]) -> Security:
    """From the file `kafka.config` and from settings. Raises UnknownSetting."""
    try:
        properties = load_properties(given["kafka.config"]) if given.get("kafka.config") else {}
        check_names(properties)
        security = read_security({**properties, **{name: given[name] for name in SECURITY_PROPERTIES if name in given}})
        security.client_arguments()  # Reads the certificates, so that a wrong path is reported at the start.
    except InvalidProperty as error:
        raise UnknownSetting(str(error)) from error
    return security
