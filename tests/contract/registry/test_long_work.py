"""Schemas that take long to parse or compare do not delay other requests."""

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from headgate.registry import languages
from headgate.registry.api.state import INLINE_BODY_BYTES_MAX
from headgate.registry.compatibility.json_schema.comparison import Comparison
from headgate.registry.settings import RegistrySettings
from tests.contract.registry.schemas import defaulted, record
from tests.live.registry import RegistryApi, error_of, running_registry

PATIENCE_SECONDS = 30.0


def long_schema(*more: Any) -> str:
    """Return a schema that is too long for the event loop and for the cache of parsed schemas."""
    return record(*(defaulted(f"f{number}") for number in range(1000)), *more, doc="takes long")


class Gate:
    """Blocks all parsing of long schemas until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        understand = languages._parse

        def slowly(type: Any, text: str, *rest: Any) -> Any:
            if "takes long" in text:
                self.reached.set()
                assert self.open.wait(PATIENCE_SECONDS), "nobody got past the long schema"
            return understand(type, text, *rest)

        monkeypatch.setattr("headgate.registry.languages._parse", slowly)

    @contextmanager
    def holding(self, request: Callable[[], httpx.Response]) -> Iterator[list[httpx.Response]]:
        """Keep `request` blocked during the `with` block. Its response is available afterwards."""
        answers: list[httpx.Response] = []
        asking = threading.Thread(target=lambda: answers.append(request()))
        asking.start()
        assert self.reached.wait(PATIENCE_SECONDS)
        yield answers
        assert not answers
        self.open.set()
        asking.join(PATIENCE_SECONDS)


REQUESTS: dict[str, Callable[[RegistryApi], httpx.Response]] = {
    "registering a long schema": lambda api: api.try_register("long", long_schema(defaulted("g"))),
    "registering a short schema after a long one": lambda api: api.try_register("long", record(defaulted("a"))),
    "looking a long schema up": lambda api: api.post("/subjects/long", {"schema": long_schema()}),
    "checking a long schema": lambda api: api.post(
        "/compatibility/subjects/long/versions", {"schema": long_schema(defaulted("g"))}
    ),
    "checking a short schema against a long one": lambda api: api.post(
        "/compatibility/subjects/long/versions/latest", {"schema": record("a")}
    ),
    "asking for another form": lambda api: api.get("/schemas/ids/1?format=resolved"),
    "tagging a long schema": lambda api: api.post(
        "/subjects/long/versions/1/tags",
        {"tagsToAdd": [{"schemaEntity": {"entityPath": "R", "entityType": "sr_record"}, "tags": ["PII"]}]},
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_other_requests_do_not_wait_for_a_long_schema(
    api: RegistryApi, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    api.register("long", long_schema())
    gate = Gate(monkeypatch)
    with gate.holding(lambda: REQUESTS[name](api)) as answers:
        assert api.register("short", record("a")) == 2
        assert api.register("short", record("a", defaulted("b"))) == 3
        assert api.post("/subjects/short", {"schema": record("a")}).json()["id"] == 2
        assert api.post("/compatibility/subjects/short/versions", {"schema": record("a")}).json()["is_compatible"]
        assert api.get("/subjects").json() == ["long", "short"]
        assert api.delete("/subjects/short/versions/1").json() == 1
    assert answers[0].status_code == 200, answers[0].text


def test_a_long_schema_is_compared_with_versions_registered_meanwhile(
    api: RegistryApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.register("s", record("a"))
    gate = Gate(monkeypatch)
    with gate.holding(lambda: api.try_register("s", long_schema("a"))) as answers:
        api.register("s", record("a", defaulted("f0", 0, "int")))
    assert error_of(answers[0]) == (409, 409)
    assert "oldSchemaVersion: 2" in answers[0].json()["message"]


def test_a_long_schema_that_is_sent_twice_concurrently_is_registered_once(
    api: RegistryApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    second: list[httpx.Response] = []
    with gate.holding(lambda: api.try_register("s", long_schema())) as first:
        other = threading.Thread(target=lambda: second.append(api.try_register("s", long_schema())))
        other.start()
    other.join(PATIENCE_SECONDS)
    assert first[0].json() == second[0].json()
    assert api.get("/subjects/s/versions").json() == [1]


def test_long_schemas_are_normalized_and_found_like_short_ones(tmp_path: Path) -> None:
    api = RegistryApi(tmp_path, RegistrySettings())
    try:
        schema = json.loads(long_schema())
        api.register("s", json.dumps({**schema, "b": 1, "a": 2}), query="?normalize=true")
        body = {"schema": json.dumps({**schema, "a": 2, "b": 1})}
        assert api.post("/subjects/s?normalize=true", body).json()["version"] == 1
        assert api.register("s", body["schema"], query="?normalize=true") == 1
    finally:
        api.close()


def test_streams_of_changes_end_when_the_registry_stops(tmp_path: Path) -> None:
    with running_registry(tmp_path) as process:
        headers = {"accept": "text/event-stream"}
        with httpx.stream("GET", f"{process.url}/changes", headers=headers, timeout=PATIENCE_SECONDS) as answer:
            lines = answer.iter_lines()
            assert next(lines) == ": the changes of the schema registry"
            process.terminate()
            # Wait for the regular end. A dropped connection would raise an exception.
            assert list(lines) == [""]


def test_short_schemas_that_take_long_to_compare_are_compared_in_the_background(
    api: RegistryApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alternatives(first: int) -> dict[str, str]:
        lengths = [first + 2 * number for number in range(100)]
        random.Random(first).shuffle(lengths)
        text = json.dumps({"anyOf": [{"minLength": length} for length in lengths]})
        assert len(text) < INLINE_BODY_BYTES_MAX
        return {"schema": text, "schemaType": "JSON"}

    finished: list[str] = []
    run = Comparison.run

    def recording(*arguments: Any) -> Any:
        found = run(*arguments)
        finished.append(threading.current_thread().name)
        return found

    monkeypatch.setattr(Comparison, "run", recording)
    assert api.post("/subjects/s/versions", alternatives(2)).status_code == 200
    assert api.post("/compatibility/subjects/s/versions", alternatives(1)).json() == {"is_compatible": True}
    assert api.post("/subjects/s/versions", alternatives(1)).status_code == 200
    assert len(finished) == 2
    assert all(name.startswith("registry-schemas") for name in finished)
