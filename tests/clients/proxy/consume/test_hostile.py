"""Random requests: no response is a 5xx, and the proxy keeps running."""

import json
import random
from typing import Any
from urllib.parse import quote

import pytest

from tests.clients.proxy.consume.api import EVENTS, JSON, NDJSON, V2, Api

REQUESTS = 150
TEXTS = (
    *(
        "",
        "0",
        "-1",
        "1",
        "-20",
        "99999999999999999999",
        "9223372036854775807",
        "\x00",
        "é",
        "٣",
        "%",
        "..",
        "a" * 3000,
    ),
    *("true", "null", "[]", "1e9", "NaN", "0:0", "0:9223372036854775807", "99999999999:1", "0:1,0:2", "latest"),
    *("2026-01-01", "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00+14:00", "key:", "value.a>=x", '"', "- -"),
    *("header.:x", "value..a=1", "(((", "value.0.0<1", "*", "topic\n", "__consumer_offsets", "avro", "json"),
)
PARAMETERS = (
    *("offset", "timestamp", "from", "positions", "limit", "max_bytes", "timeout", "filter", "key_format", "format"),
    *("isolation_level", "on_poison", "dead_letter_topic", "replay", "topics", "max_unacked", "auto_offset_reset"),
)
FIELDS = (
    *("topics", "topic_pattern", "partitions", "offsets", "timestamps", "name", "format", "key.format", "ack", "acks"),
    *("auto.offset.reset", "auto.commit.enable", "fetch.min.bytes", "consumer.request.timeout.ms", "isolation.level"),
)
PLACES = ("/subscription", "/assignments", "/offsets", "/positions", "/positions/beginning", "/positions/end")
ACCEPTS = ("*/*", "application/json", NDJSON, EVENTS, JSON, V2, "text/html", "a/b;q=x", "")


class Mischief:
    def __init__(self, seed: int, topic: str) -> None:
        self._random = random.Random(seed)
        self._topic = topic

    def text(self) -> str:
        return quote(self._random.choice(TEXTS), safe="")

    def query(self) -> str:
        chosen = [f"{self._random.choice(PARAMETERS)}={self.text()}" for _ in range(self._random.randint(0, 3))]
        return "&".join([*chosen, "limit=2", "timeout=10"])

    def value(self) -> Any:
        place = {"topic": self._topic, "partition": self._random.choice([0, 0, 99, -1, 2**31, "0", None])}
        rows = [
            {**place, "offset": 1},
            {**place, "timestamp": 2**70},
            {**place, "timestamp": "2026-01-01"},
            {"topic": 1},
        ]
        return self._random.choice(
            [*TEXTS, None, True, -1, 1.5, 2**63, [], {}, [None], [self._topic], *([row] for row in rows)]
        )

    def body(self) -> bytes:
        if self._random.random() < 0.2:
            return self._random.choice([b"", b"[", b"null", b"\xff", b"[]", b'"x"', b"[" * 5000])
        fields = {self._random.choice(FIELDS): self.value() for _ in range(self._random.randint(0, 3))}
        return json.dumps(fields).encode()

    def request(self, api: Api, instance: str) -> tuple[str, str, bytes | None]:
        topic = self._random.choice([self._topic, self._topic, self.text() or "x"])
        partition = self._random.choice(["0", self.text() or "x"])
        return self._random.choice(
            [
                ("GET", f"{api.base}/topics/{topic}/records?{self.query()}", None),
                ("GET", f"{api.base}/topics/{topic}/partitions/{partition}/records?{self.query()}", None),
                ("GET", f"/topics/{topic}/partitions/{partition}/records?{self.query()}", None),
                ("POST", f"/consumers/{self.text() or 'g'}", self.body()),
                ("POST", f"{api.base}/consumer-groups/g/streams/x/acks", self.body()),
                ("GET", f"{instance}/records?{self.query()}", None),
                (self._random.choice(["GET", "POST"]), instance + self._random.choice(PLACES), self.body()),
                ("POST", instance + self._random.choice(PLACES), self.body()),
            ]
        )

    def headers(self) -> dict[str, str]:
        headers = {"accept": self._random.choice(ACCEPTS), "content-type": V2}
        if self._random.random() < 0.1:
            headers["last-event-id"] = self._random.choice(["0:0", "x", "0:99999", "5:5"])
        return headers


@pytest.mark.parametrize("seed", range(4))
def test_no_request_gets_a_5xx(api: Api, seed: int) -> None:
    topic = api.topic()
    api.produce(topic, 1, {"a": 2}, None)
    mischief = Mischief(seed, topic)
    instance = api.instance().uri.removeprefix(api.url)
    for _ in range(REQUESTS):
        method, path, body = mischief.request(api, instance)
        answer = api.client.request(method, path, content=body, headers=mischief.headers())
        assert answer.status_code < 500, (method, path, body, answer.text)
    assert len(api.page(topic)["data"]) == 3
