"""One payload per poison reason, and the ways to read it: HTTP, Python, command line, Spark, dead letters.

Each way returns the reason of each record of a topic, None for a good record.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from confluent_kafka import Producer
from pyarrow import parquet

from headgate.serdes import Deserializer, DeserializerOptions, Poison, Reason, RegistryClient
from headgate.serdes.framing import frame
from headgate.spark_udfs import dead_letters
from headgate.testing import Headgate, PoisonPayloads
from tests.clients.cli.conftest import Cli
from tests.live.topics import create_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SUBJECT = "verdict-value"
ENCRYPT = {"domainRules": [{"name": "e", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "ENCRYPT", "tags": ["P"]}]}
JSON_SCHEMA = {"schema": '{"type": "object"}', "schemaType": "JSON"}
RULED_SCHEMA = {"schema": '{"type": "record", "name": "Ruled", "fields": []}', "ruleSet": ENCRYPT}
LATE_SCHEMA = {"schema": '{"type": "record", "name": "Late", "fields": []}'}

Verdicts = list[str | None]


class Corpus:
    """`reasons` and `payloads` have the same order. The payload `late` needs a schema that no way has read yet."""

    def __init__(self, headgate: Headgate) -> None:
        with RegistryClient(headgate.registry_url) as client:
            poison = PoisonPayloads(client, SUBJECT)
            found: dict[Reason, bytes | None] = {reason: poison(reason) for reason in poison.REASONS}
        found[Reason.UNRESOLVABLE] = frame(_register(headgate, "verdict-json", JSON_SCHEMA), b"{}")
        found[Reason.RULES_NOT_EXECUTED] = frame(_register(headgate, "verdict-ruled", RULED_SCHEMA), b"")
        self.late = frame(_register(headgate, "verdict-late", LATE_SCHEMA), b"")
        self.reasons = tuple(found)
        self.payloads = tuple(found.values())


def _register(headgate: Headgate, subject: str, body: dict[str, Any]) -> int:
    answer = httpx.post(f"{headgate.registry_url}/subjects/{subject}/versions", json=body)
    return int(answer.raise_for_status().json()["id"])


def write(headgate: Headgate, topic: str, payloads: Sequence[bytes | None]) -> None:
    create_topic(headgate.bootstrap_servers, topic)
    producer = Producer({"bootstrap.servers": headgate.bootstrap_servers})
    for payload in payloads:
        producer.produce(topic, payload)
    assert producer.flush(30) == 0


def by_http(headgate: Headgate, topic: str) -> Verdicts:
    with httpx.Client(base_url=headgate.proxy_url, timeout=60) as http:
        cluster = http.get("/v3/clusters").json()["data"][0]["cluster_id"]
        page = http.get(f"/v3/clusters/{cluster}/topics/{topic}/records", params={"value_format": "avro"})
    return [row["poison"]["reason"] if "poison" in row else None for row in page.raise_for_status().json()["data"]]


def by_python(headgate: Headgate, payloads: Sequence[bytes | None], reader: str | None = SUBJECT) -> Verdicts:
    with RegistryClient(headgate.registry_url) as client:
        deserializer = Deserializer(client, DeserializerOptions(reader_subject=reader))
        outcomes = [deserializer.decode(payload) for payload in payloads]
    return [outcome.reason.name if isinstance(outcome, Poison) else None for outcome in outcomes]


def by_command_line(headgate: Headgate, cli: Cli, topic: str) -> Verdicts:
    options = ("--registry", headgate.registry_url, "-s", "value=avro", "--stop-at-end", "--json")
    rows = [json.loads(line) for line in cli("consume", topic, *options, code=1).lines]
    return [row["poison"]["reason"] if "poison" in row else None for row in rows]


def by_dead_letter_topic(headgate: Headgate, cli: Cli, topic: str, records: int) -> Verdicts:
    """The reasons of the letters, by the offset of the record."""
    options = ("--registry", headgate.registry_url, "-s", "value=avro", "--stop-at-end", "--group", topic)
    done = cli("consume", topic, *options, "--on-poison", "dead-letter")
    letters = done.err.split("(now in ")[1].split(")")[0]
    found: Verdicts = [None] * records
    for line in cli("dead", "list", letters, "--json").lines:
        letter = json.loads(line)
        found[letter["source"]["offset"]] = letter["reason"]
    return found


def by_dead_letter_table(decoded: "DataFrame", folder: Path, records: int) -> Verdicts:
    dead_letters(decoded).write.parquet(str(folder))
    found: Verdicts = [None] * records
    table = parquet.read_table(folder, columns=["n", "reason"])  # type: ignore[no-untyped-call]
    for row in table.to_pylist():
        found[row["n"]] = row["reason"]
    return found
