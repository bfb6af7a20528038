"""What a proxy is told: whom to talk to, and its limits. Confluent's names are accepted where they exist."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Self


class UnknownSetting(ValueError):
    """A setting of that name does not exist, or its value will not do."""


@dataclass(frozen=True, slots=True)
class ProxySettings:
    bootstrap_servers: str = "127.0.0.1:9092"
    schema_registry_url: str = "http://127.0.0.1:8081"
    advertised_url: str | None = None
    """What clients are told to come back to; else what they asked for (Forwarded, X-Forwarded-*, Host)."""

    request_body_bytes_max: int = 64 * 1024 * 1024
    """A whole body in memory; streams are not bound by it."""
    json_depth_max: int = 200
    """Deeper JSON is a mistake or an attack: encoders and decoders recurse."""
    records_per_request_max: int = 100_000
    produce_timeout_ms: int = 30_000
    """How long a record may wait for its acknowledgement."""
    producer_batch_bytes_max: int = 1_000_000
    """Below the brokers' default of 1 MiB for a batch, with room for its header."""
    producer_pending_bytes_max: int = 64 * 1024 * 1024
    """Records that wait for brokers, all requests together. Beyond it, requests are told to come back (429)."""

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
    read_streams_max: int = 10_000
    stream_heartbeat_ms: int = 15_000
    """A line in a silent stream, so that nobody between takes it for dead."""
    kafka_request_timeout_ms: int = 20_000

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """From texts under dotted names, such as `consumer.instance.timeout.ms`. Raises UnknownSetting."""
        known = {field.name: field.type for field in fields(cls)}
        changed: dict[str, object] = {}
        for name, text in given.items():
            attribute = name.replace(".", "_")
            if attribute not in known:
                raise UnknownSetting(f"there is no setting {name}")
            if known[attribute] is int:
                if not text.strip().lstrip("-").isdigit():
                    raise UnknownSetting(f"{name} must be a whole number, not {text!r}")
                changed[attribute] = int(text)
            else:
                changed[attribute] = text
        return replace(cls(), **changed)  # type: ignore[arg-type]  # each value is of its field's type
