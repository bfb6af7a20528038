"""A client of the proxy for consume tests: topics, records, instances, streams."""

import base64
import json
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import httpx

V2 = "application/vnd.kafka.v2+json"
BINARY = "application/vnd.kafka.binary.v2+json"
JSON = "application/vnd.kafka.json.v2+json"
TEXT = "application/vnd.kafka.text.v2+json"
AVRO = "application/vnd.kafka.avro.v2+json"
NDJSON = "application/x-ndjson"
EVENTS = "text/event-stream"
REQUEST_SECONDS_MAX = 60.0
POLLS_MAX = 20


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Instance:
    """A v2 consumer instance. The constructor creates it on the proxy."""

    def __init__(self, api: "Api", group: str, accept: str, **config: Any) -> None:
        answer = api.client.post(f"/consumers/{group}", json=config, headers={"content-type": V2})
        assert answer.status_code == 200, answer.text
        self.name: str = answer.json()["instance_id"]
        self.uri: str = answer.json()["base_uri"]
        self.group = group
        self._client = api.client
        self._accept = accept

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        content = None if body is None else json.dumps(body).encode()
        headers = {"content-type": V2, **options.pop("headers", {})}
        return self._client.request(method, f"{self.uri}{path}", content=content, headers=headers, **options)

    def do(self, method: str, path: str, body: Any = None) -> None:
        answer = self.ask(method, path, body)
        assert answer.status_code in (200, 204), answer.text

    def subscribe(self, *topics: str) -> "Instance":
        self.do("POST", "/subscription", {"topics": list(topics)})
        return self

    def assign(self, topic: str, *partitions: int) -> "Instance":
        self.do("POST", "/assignments", {"partitions": [{"topic": topic, "partition": p} for p in partitions]})
        return self

    def poll(self, query: str = "timeout=1000") -> httpx.Response:
        return self.ask("GET", f"/records?{query}", headers={"accept": self._accept})

    def read(self, count: int, query: str = "timeout=1000") -> list[dict[str, Any]]:
        """Poll until at least `count` records have arrived, at most `POLLS_MAX` times."""
        rows: list[dict[str, Any]] = []
        for _ in range(POLLS_MAX):
            answer = self.poll(query)
            assert answer.status_code == 200, answer.text
            rows += answer.json()
            if len(rows) >= count:
                return rows
        raise AssertionError(f"{len(rows)} of {count} records after {POLLS_MAX} polls: {rows}")

    def committed(self, topic: str, partition: int = 0) -> int | None:
        body = {"partitions": [{"topic": topic, "partition": partition}]}
        answer = self.ask("GET", "/offsets", body)
        assert answer.status_code == 200, answer.text
        rows = answer.json()["offsets"]
        return rows[0]["offset"] if rows else None

    def delete(self) -> None:
        self.do("DELETE", "")


class Api:
    def __init__(self, url: str, broker: str, registry_url: str) -> None:
        self.url = url
        self.broker = broker
        self.registry_url = registry_url
        self.client = httpx.Client(base_url=url, timeout=REQUEST_SECONDS_MAX)
        self.cluster_id: str = self.client.get("/v3/clusters").json()["data"][0]["cluster_id"]
        self.base = f"/v3/clusters/{self.cluster_id}"

    def topic(self, partitions: int = 1) -> str:
        name = f"topic-{secrets.token_hex(4)}"
        body = {"topic_name": name, "partitions_count": partitions, "replication_factor": 1}
        answer = self.client.post(f"{self.base}/topics", json=body)
        assert answer.status_code == 201, answer.text
        return name

    def group(self) -> str:
        return f"group-{secrets.token_hex(4)}"

    def produce(self, topic: str, *values: Any, media_type: str = JSON, **fields: Any) -> list[int]:
        return self.produce_rows(topic, [{"value": value, **fields} for value in values], media_type)

    def produce_rows(self, topic: str, rows: Sequence[dict[str, Any]], media_type: str = JSON) -> list[int]:
        body = json.dumps({"records": rows})
        answer = self.client.post(f"/topics/{topic}", content=body, headers={"content-type": media_type})
        assert answer.status_code == 200, answer.text
        offsets = answer.json()["offsets"]
        assert all(row["error_code"] is None for row in offsets), answer.text
        return [row["offset"] for row in offsets]

    def produce_bytes(self, topic: str, *values: bytes, **fields: Any) -> list[int]:
        return self.produce(topic, *(b64(value) for value in values), media_type=BINARY, **fields)

    def instance(self, group: str | None = None, accept: str = JSON, **config: Any) -> Instance:
        """Create an instance. Settings use underscores for dots: `auto_offset_reset` for `auto.offset.reset`."""
        dotted = {name.replace("_", "."): value for name, value in config.items()}
        dotted = {"format": "json", "auto.offset.reset": "earliest", **dotted}
        return Instance(self, group or self.group(), accept, **dotted)

    def register(self, subject: str, schema: Any, kind: str = "AVRO") -> int:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, "schemaType": kind}
        answer = httpx.post(f"{self.registry_url}/subjects/{subject}/versions", json=body, timeout=30)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["id"])

    def records(self, topic: str, query: str = "", partition: int | None = None, accept: str = "*/*") -> httpx.Response:
        place = "" if partition is None else f"/partitions/{partition}"
        return self.client.get(f"{self.base}/topics/{topic}{place}/records?{query}", headers={"accept": accept})

    def page(self, topic: str, query: str = "", partition: int | None = None) -> dict[str, Any]:
        answer = self.records(topic, query, partition)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def lines(self, topic: str, query: str = "") -> list[dict[str, Any]]:
        answer = self.records(topic, query, accept=NDJSON)
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines() if line]

    def stream(self, path: str, accept: str = NDJSON, **headers: str) -> Any:
        return self.client.stream("GET", f"{self.base}/{path}", headers={"accept": accept, **headers})


def objects(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of an NDJSON stream. Skips heartbeats, which are blank lines."""
    for line in answer.iter_lines():
        if line.strip():
            yield json.loads(line)


def events(answer: httpx.Response) -> Iterator[dict[str, str]]:
    """Yield the fields of each server-sent event. As in a browser, a block without data is not an event."""
    fields: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            if "data" in fields:
                yield fields
            fields = {}
