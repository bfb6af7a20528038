"""What a proxy is told: whom to talk to, and its limits. Confluent's names are accepted where they exist."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Self

from headgate.kafka_client.errors import InvalidProperty
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.properties import load_properties
from headgate.kafka_client.security import SECURITY_PROPERTIES, Security, check_names, read_security
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
    """Schemas with rules (ENCRYPT, CEL), which the proxy does not execute. `fail` refuses to write and returns poison
    on read; `ignore` goes on without the rules."""
    advertised_url: str | None = None
    """The base of links in responses. Empty: the forwarding headers of trusted proxies, else the Host header."""
    allowed_hosts: str = ""
    """Host names under which clients reach the proxy, separated by commas: a load balancer, a container, a service.
    Requests for other names are refused (421). `*.intern.example` allows all names below a domain, `*` all."""
    trusted_proxies: str = ""
    """IP addresses and networks whose Forwarded and X-Forwarded-* headers are used, separated by commas. Workers whose
    `worker.urls` contain IP addresses are trusted without being listed."""

    access_control_allow_origin: str = ""
    """Origins whose pages may send requests and open WebSockets, separated by commas; `*` for all, or for any part of a
    name. Empty: only pages of the proxy's own origin."""
    access_control_allow_methods: str = ""
    """What such pages may send. Empty: every method that the proxy has."""
    access_control_allow_headers: str = ""
    """Empty: every header that the proxy looks at."""

    request_body_bytes_max: int = 64 * 1024 * 1024
    """A whole body in memory; streams are not bound by it."""
    request_bodies_bytes_max: int = 256 * 1024 * 1024
    """Bodies in memory, all requests together. Beyond it, requests are told to come back (429)."""
    request_body_timeout_ms: int = 60_000
    """How long a client may be silent in the middle of a body."""
    records_per_request_max: int = 100_000
    produce_batch_maximum_entries: int = 10_000
    """Of `records:batch`."""
    produce_timeout_ms: int = 20_000
    """How long a record may wait for its acknowledgement, all attempts together."""
    auto_create_topics: bool = True
    """Whether producing to a topic that does not exist asks the broker to create it, as Kafka's own producers do. The
    broker has the last word (`auto.create.topics.enable`)."""
    schema_id_subject_check: bool = True
    """Whether a schema named by its id must be registered under the subject of the topic, as in Confluent's proxy."""
    producer_batch_bytes_max: int = 1_000_000
    """Below the brokers' default of 1 MiB for a batch, with room for its header."""
    producer_pending_bytes_max: int = 64 * 1024 * 1024
    """Records that wait for brokers, all requests together. Beyond it, requests are told to come back (429)."""
    produce_reports_bytes_max: int = 128 * 1024 * 1024
    """Reports that clients of produce streams have not taken, all streams together. Beyond it, no more records are read
    from clients that leave more than 256 KiB of reports."""
    produce_reports_timeout_ms: int = 60_000
    """How long such a client may take no reports, and any client after its last record. Then it is disconnected."""

    idempotency_topic: str = "__headgate_idempotency"
    """Where the outcomes of requests with an Idempotency-Key are kept, for all workers."""
    idempotency_window_ms: int = 24 * 3600 * 1000
    """How long a repeated request gets the answer of the first."""
    idempotency_keys_max: int = 200_000
    """Keys that are remembered; beyond it the oldest are forgotten before their window ends."""
    rate_limit_requests_per_second: int = 0
    """For each client, over all its connections; a record of a stream counts as a request. 0: no limit."""
    rate_limit_bytes_per_second: int = 0
    """Of request bodies, for each client. 0: no limit."""
    rate_limit_burst_seconds: int = 2
    """How much of its allowance a client that was silent may use at once."""
    shutdown_graceful_ms: int = 10_000
    """How long requests in flight may take to finish once the proxy is told to stop."""

    consumer_instance_timeout_ms: int = 300_000
    consumer_request_timeout_ms: int = 1_000
    consumer_request_max_bytes: int = 64 * 1024 * 1024
    consumer_instances_max: int = 10_000
    consumer_request_timeout_max_ms: int = 300_000
    """How long one read may wait; whatever stands between takes a longer silence for a dead connection."""
    consumer_replay_bytes_max: int = 256 * 1024 * 1024
    """Last answers kept for repetition, all instances together; the oldest go first."""
    worker_url: str | None = None
    """Where the other workers reach this one; one of `worker_urls`."""
    worker_urls: str = ""
    """All workers behind one address, separated by commas, the same list on each. A request for a consumer that lives
    in another one is passed on to it, and to no address that does not stand here."""
    fetch_batch_decompressed_bytes_max: int = 128 * 1024 * 1024
    """Decompressed size of one record batch. Records beyond it are returned as poison."""
    read_streams_max: int = 10_000
    streams_bytes_max: int = 256 * 1024 * 1024
    """What all streams and pages together hold for their clients. Beyond it new reads wait, pages end early, and
    clients that have taken nothing for five seconds are disconnected."""
    stream_heartbeat_ms: int = 15_000
    """A line in a silent stream, so that nobody between takes it for dead."""
    kafka_request_timeout_ms: int = 10_000
    metadata_max_age_ms: int = 60_000
    """How long it may take until new partitions are seen."""

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
                    raise UnknownSetting(f"{name} must be a whole number, not {text!r}")
                changed[attribute] = int(text)
            elif known[attribute] is bool:
                if text.strip().lower() not in ("true", "false"):
                    raise UnknownSetting(f"{name} must be true or false, not {text!r}")
                changed[attribute] = text.strip().lower() == "true"
            else:
                changed[attribute] = text
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
