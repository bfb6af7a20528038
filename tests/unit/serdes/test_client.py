"""The registry client: requests, caches and retries."""

import asyncio
import base64
import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import httpx
import pytest

from headgate.registry.limits import REFERENCE_DEPTH_MAX, REFERENCES_MAX
from headgate.registry.model import Reference, SchemaType
from headgate.serdes import (
    AsyncRegistryClient,
    BasicAuth,
    BearerAuth,
    RegistryClient,
    RegistrySettings,
    RegistryUnavailable,
    RequestRefused,
    SchemaDefinition,
    UnknownSchema,
    avro_schema,
)
from tests.unit.serdes.stub_registry import ADDRESS, StubRegistry, error, guid

STRING = avro_schema('"string"')


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def client(stub: StubRegistry, clock: Clock | None = None, **settings: object) -> RegistryClient:
    clock = clock or Clock()
    chosen = RegistrySettings(**{"urls": (ADDRESS,), **settings})  # type: ignore[arg-type]  # a test's shorthand
    return RegistryClient(chosen, transport=stub.transport, clock=clock, sleep=clock.sleep, jitter=lambda: 1.0)


def test_a_schema_is_requested_once() -> None:
    stub = StubRegistry()
    stub.add("s", {"schema": '"string"'})
    with client(stub) as registry:
        first = registry.schema_by_id(1)
        assert first is registry.schema_by_id(1)
    assert first.definition == STRING
    assert first.guid == UUID(guid(1))
    assert stub.paths() == ["GET /schemas/ids/1"]


def test_an_unknown_id_is_cached_until_it_expires() -> None:
    stub, clock = StubRegistry(), Clock()
    with client(stub, clock, unknown_ttl_seconds=30.0) as registry:
        for _ in range(5):
            with pytest.raises(UnknownSchema):
                registry.schema_by_id(9)
        assert len(stub.requests) == 1
        clock.now = 31.0
        with pytest.raises(UnknownSchema):
            registry.schema_by_id(9)
        assert len(stub.requests) == 2


def test_an_outage_is_retried_with_backoff_and_then_cached() -> None:
    stub, clock = StubRegistry(), Clock()
    stub.intercept = lambda request: error(503, 50301, "down")
    with client(stub, clock, attempts_max=3, backoff_seconds=0.1, unavailable_ttl_seconds=2.0) as registry:
        for _ in range(4):
            with pytest.raises(RegistryUnavailable, match="status 503"):
                registry.schema_by_id(1)
        assert len(stub.requests) == 3
        assert clock.pauses == [0.1, 0.2]
        clock.now = 2.5
        stub.intercept = lambda request: None
        stub.add("s", {"schema": '"string"'})
        assert registry.schema_by_id(1).definition == STRING


def test_an_outage_applies_to_all_ids() -> None:
    stub, clock = StubRegistry(), Clock()
    stub.intercept = lambda request: error(503, 50301, "down")
    with client(stub, clock, attempts_max=2) as registry:
        for schema_id in range(50):
            with pytest.raises(RegistryUnavailable):
                registry.schema_by_id(schema_id)
        with pytest.raises(RegistryUnavailable):
            registry.register("s", STRING)
    assert len(stub.requests) == 2


def test_ids_of_corrupt_records_cause_few_requests() -> None:
    stub, clock = StubRegistry(), Clock()
    stub.add("s", {"schema": '"string"'})
    with client(stub, clock) as registry:
        registry.schema_by_id(1)
        for number in range(500):
            with pytest.raises(UnknownSchema):
                registry.schema_by_id(1_000_000 + number * 7919)
        assert len(stub.requests) == 12
        assert stub.paths()[-1] == "GET /schemas/ids/1?fetchMaxId=true"
        # A schema that was registered meanwhile is still found, and later all ids are requested again.
        stub.add("s", {"schema": '"int"'})
        assert registry.schema_by_id(2).id == 2
        clock.now = 31.0
        with pytest.raises(UnknownSchema):
            registry.schema_by_id(2_000_000)
        assert len(stub.requests) == 14


def test_failover_uses_the_next_address_and_keeps_it() -> None:
    stub = StubRegistry()
    stub.add("s", {"schema": '"string"'})
    stub.add("s", {"schema": '"int"'})

    def first_is_down(request: httpx.Request) -> httpx.Response | None:
        if request.url.host == "one":
            raise httpx.ConnectError("refused")
        return None

    stub.intercept = first_is_down
    with client(stub, urls=("http://one", "http://two")) as registry:
        registry.schema_by_id(1)
        registry.schema_by_id(2)
    assert [request.url.host for request in stub.requests] == ["one", "two", "two"]


@pytest.mark.parametrize("answer", [httpx.Response(200, text="<html>"), httpx.Response(404, text="no such page")])
def test_a_response_of_another_server_counts_as_an_outage(answer: httpx.Response) -> None:
    stub = StubRegistry()
    stub.intercept = lambda request: answer
    with client(stub) as registry, pytest.raises(RegistryUnavailable, match="not a response of a schema registry"):
        registry.schema_by_id(1)


@pytest.mark.parametrize(
    "body",
    [{}, {"schema": 7}, {"schema": "x", "schemaType": "XML"}, {"schema": "x", "references": [{"name": "a"}]}, []],
)
def test_a_response_with_another_structure_counts_as_an_outage(body: object) -> None:
    stub = StubRegistry()
    stub.intercept = lambda request: httpx.Response(200, json=body)
    with client(stub) as registry, pytest.raises(RegistryUnavailable):
        registry.schema_by_id(1)


def test_the_size_of_a_response_is_limited() -> None:
    stub = StubRegistry()
    stub.intercept = lambda request: httpx.Response(200, content=b"[" + b" " * 5000)
    with client(stub, answer_bytes_max=1000) as registry, pytest.raises(RegistryUnavailable, match="too large"):
        registry.schema_by_id(1)


@pytest.mark.parametrize("schema_id", [-1, 1 << 31, (1 << 32) - 1])
def test_an_impossible_id_is_unknown_without_a_request(schema_id: int) -> None:
    stub = StubRegistry()
    with client(stub) as registry, pytest.raises(UnknownSchema):
        registry.schema_by_id(schema_id)
    assert stub.requests == []


def test_a_rejection_contains_the_message_of_the_registry() -> None:
    stub = StubRegistry()
    stub.intercept = lambda request: error(409, 409, "incompatible: age")
    with client(stub) as registry, pytest.raises(RequestRefused, match="incompatible: age") as caught:
        registry.register("s", STRING)
    assert (caught.value.status, caught.value.error_code) == (409, 409)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_registration_sends_the_language_and_the_references_and_quotes_the_subject() -> None:
    stub = StubRegistry()
    schema = SchemaDefinition(SchemaType.PROTOBUF, 'syntax = "proto3";', (Reference("a.proto", "a", 2),))
    with client(stub) as registry:
        assert registry.register("a/b c", schema, normalize=True).id == 1
        assert registry.register("a/b c", schema, normalize=True).id == 1
    assert stub.paths() == ["POST /subjects/a%2Fb%20c/versions?normalize=true"]
    assert stub.schemas == [
        {
            "schema": 'syntax = "proto3";',
            "schemaType": "PROTOBUF",
            "references": [{"name": "a.proto", "subject": "a", "version": 2}],
        }
    ]


def test_lookup_and_latest_and_guid() -> None:
    stub, clock = StubRegistry(), Clock()
    stub.add("s", {"schema": '"string"'})
    with client(stub, clock, latest_ttl_seconds=60.0) as registry:
        assert registry.lookup("s", STRING).version == 1
        assert registry.schema_by_guid(UUID(guid(1))).definition == STRING
        assert registry.latest("s").version == 1
        stub.add("s", {"schema": '"int"'})
        assert registry.latest("s").version == 1
        clock.now = 61.0
        assert registry.latest("s").version == 2


def test_the_cached_latest_version_is_used_during_an_outage() -> None:
    stub, clock = StubRegistry(), Clock()
    stub.add("s", {"schema": '"string"'})
    with client(stub, clock) as registry:
        registry.latest("s")
        stub.intercept = lambda request: error(500, 50001, "store")
        clock.now = 1000.0
        assert registry.latest("s").version == 1


def test_references_are_followed_dependencies_first() -> None:
    stub = StubRegistry()
    stub.add("inner", {"schema": "I"})
    stub.add("outer", {"schema": "O", "references": [{"name": "inner", "subject": "inner", "version": 1}]})
    top = avro_schema("T", (Reference("outer", "outer", 1), Reference("inner", "inner", 1)))
    with client(stub) as registry:
        texts = registry.reference_texts(top)
    assert list(texts.items()) == [("inner", "I"), ("outer", "O")]


def test_circular_references_end() -> None:
    stub = StubRegistry()
    stub.add("a", {"schema": "A", "references": [{"name": "b", "subject": "a", "version": 1}]})
    with client(stub) as registry, pytest.raises(RequestRefused):
        registry.reference_texts(avro_schema("T", (Reference("a", "a", 1),)))


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        (BasicAuth("me", "secret"), "Basic " + base64.b64encode(b"me:secret").decode()),
        (BearerAuth("token"), "Bearer token"),
        (BearerAuth(lambda: "fresh"), "Bearer fresh"),
    ],
)
def test_credentials_are_sent(auth: BasicAuth | BearerAuth, expected: str) -> None:
    stub = StubRegistry()
    with client(stub, auth=auth) as registry:
        registry.register("s", STRING)
    assert stub.requests[0].headers["Authorization"] == expected
    assert "secret" not in repr(auth)


def test_credentials_in_an_address_are_sent_and_not_logged() -> None:
    stub = StubRegistry()
    stub.intercept = lambda request: error(503, 1, "down")
    settings = RegistrySettings(("http://me:s%40cret@stub",), attempts_max=1)
    with (
        RegistryClient(settings, transport=stub.transport) as registry,
        pytest.raises(RegistryUnavailable) as caught,
    ):
        registry.schema_by_id(1)
    assert stub.requests[0].headers["Authorization"] == "Basic " + base64.b64encode(b"me:s@cret").decode()
    assert str(stub.requests[0].url) == "http://stub/schemas/ids/1"
    assert "cret" not in str(caught.value) + repr(settings)


def test_a_failed_token_function_counts_as_an_outage() -> None:
    def broken() -> str:
        raise OSError("no token today")

    with client(StubRegistry(), auth=BearerAuth(broken)) as registry, pytest.raises(RegistryUnavailable, match="today"):
        registry.schema_by_id(1)


def test_a_context_is_part_of_every_path() -> None:
    stub = StubRegistry()
    with client(stub, context=".lab") as registry, pytest.raises(RequestRefused):
        registry.schema_by_id(1)
    assert stub.paths() == ["GET /contexts/.lab/schemas/ids/1"]


def test_the_cache_is_limited() -> None:
    stub = StubRegistry()
    for number in range(20):
        stub.add("s", {"schema": f'{{"type": "fixed", "name": "F", "size": {number}}}'})
    with client(stub, schemas_max=5) as registry:
        for number in range(1, 21):
            registry.schema_by_id(number)
        registry.schema_by_id(20)
        assert len(stub.requests) == 20
        registry.schema_by_id(1)
        assert len(stub.requests) == 21


def test_concurrent_threads_send_one_request() -> None:
    stub = StubRegistry()
    stub.add("s", {"schema": '"string"'})
    started, gate = threading.Barrier(5), threading.Event()

    def slow(request: httpx.Request) -> httpx.Response | None:
        gate.wait(5)
        return None

    stub.intercept = slow
    with client(stub) as registry:

        def ask() -> None:
            started.wait(5)
            registry.schema_by_id(1)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        started.wait(5)
        gate.set()
        for thread in threads:
            thread.join(5)
    assert len(stub.requests) == 1


def test_concurrent_tasks_send_one_request() -> None:
    stub = StubRegistry()
    stub.add("s", {"schema": '"string"'})

    async def main() -> None:
        settings = RegistrySettings((ADDRESS,))
        async with AsyncRegistryClient(settings, transport=stub.transport) as registry:
            found = await asyncio.gather(*(registry.schema_by_id(1) for _ in range(5)))
            assert {schema.definition for schema in found} == {STRING}

    asyncio.run(main())
    assert len(stub.requests) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: RegistrySettings(()),
        lambda: RegistrySettings(("ftp://x",)),
        lambda: RegistrySettings((ADDRESS,), attempts_max=0),
    ],
)
def test_invalid_settings_are_rejected(make: Callable[[], RegistrySettings]) -> None:
    with pytest.raises(ValueError, match=r"registry needs|at least 1"):
        make()


def test_rules_that_a_registration_omits_are_requested_by_id() -> None:
    stub = StubRegistry()
    stub.add("s", {"schema": '"string"'})
    with client(stub) as registry:
        known = registry.schema_by_id(1)
        assert registry.rules_of(replace(known, rules=None)) == ()
        assert len(stub.requests) == 1
        fresh = replace(known, id=1, rules=None)
        assert registry.rules_of(replace(fresh, rules=())) == ()
        assert registry.rules_of(replace(fresh, id=None)) == ()
    assert stub.paths() == ["GET /schemas/ids/1"]


def test_references_are_limited_in_number_and_depth() -> None:
    stub = StubRegistry()
    chain = avro_schema('"string"')
    for at in range(REFERENCE_DEPTH_MAX + 1):
        before = [] if at == 0 else [{"name": f"r{at - 1}", "subject": f"r{at - 1}", "version": 1}]
        stub.add(f"r{at}", {"schema": f'{{"type": "fixed", "name": "r{at}", "size": 1}}', "references": before})
        chain = replace(chain, references=(Reference(f"r{at}", f"r{at}", 1),))
    with client(stub) as registry:
        deepest = replace(chain, references=(Reference("r", f"r{REFERENCE_DEPTH_MAX - 1}", 1),))
        assert len(registry.reference_texts(deepest)) == REFERENCE_DEPTH_MAX
        with pytest.raises(RequestRefused, match=f"longer than {REFERENCE_DEPTH_MAX}"):
            registry.reference_texts(chain)
        wide = tuple(Reference(f"w{at}", "r0", 1) for at in range(REFERENCES_MAX + 1))
        assert len(registry.reference_texts(replace(chain, references=wide[:-1]))) == REFERENCES_MAX
        with pytest.raises(RequestRefused, match=f"more than {REFERENCES_MAX} others"):
            registry.reference_texts(replace(chain, references=wide))
