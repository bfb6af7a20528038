"""The policies for a registry that does not respond."""

from collections.abc import Callable

import pytest

from headgate.serdes.client import RegistryClientError, RegistryUnavailable, RequestRefused, UnknownSchema
from headgate.spark_udfs.executor.registry_outage import BACKOFF_MAX_SECONDS, RegistryOutage
from headgate.spark_udfs.spec.policy import OnRegistryDown, RegistryDownError

WAIT_SECONDS_MAX = 60.0


class Registry:
    """A registry with a clock. It responds outside of its outages."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self.down_until = 0.0
        self.error: Callable[[], RegistryClientError] = lambda: RegistryUnavailable("connection refused")

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def schema(self) -> str:
        if self.now < self.down_until:
            raise self.error()
        return "schema"

    def outage(self, policy: OnRegistryDown) -> RegistryOutage:
        return RegistryOutage(policy, WAIT_SECONDS_MAX, clock=lambda: self.now, sleep=self.sleep)


def test_a_short_outage_ends_with_the_schema() -> None:
    registry = Registry()
    registry.down_until = 30.0
    assert registry.outage(OnRegistryDown.WAIT).request(1, registry.schema) == "schema"
    assert 30.0 <= registry.now < 30.0 + BACKOFF_MAX_SECONDS
    assert registry.pauses == sorted(registry.pauses)
    assert max(registry.pauses) == BACKOFF_MAX_SECONDS


def test_a_long_outage_delays_a_worker_once() -> None:
    registry = Registry()
    registry.down_until = 1000.0
    outage = registry.outage(OnRegistryDown.WAIT)
    for schema_id in range(100):
        with pytest.raises(RegistryUnavailable):
            outage.request(schema_id, registry.schema)
    assert registry.now == WAIT_SECONDS_MAX
    registry.now = registry.down_until
    assert outage.request(1, registry.schema) == "schema"
    registry.down_until = registry.now + 30.0
    assert outage.request(2, registry.schema) == "schema"


def test_an_id_for_which_the_registry_always_fails_waits_once() -> None:
    registry = Registry()
    outage = registry.outage(OnRegistryDown.WAIT)

    def failing() -> str:
        raise RegistryUnavailable("status 500")

    for _ in range(10):
        with pytest.raises(RegistryUnavailable):
            outage.request("hostile", failing)
        assert outage.request("good", registry.schema) == "schema"
    assert registry.now == WAIT_SECONDS_MAX


@pytest.mark.parametrize("policy", list(OnRegistryDown))
def test_an_unknown_schema_is_not_an_outage(policy: OnRegistryDown) -> None:
    registry = Registry()
    registry.down_until, registry.error = 1.0, lambda: UnknownSchema("schema 5")
    with pytest.raises(UnknownSchema):
        registry.outage(policy).request(5, registry.schema)
    assert not registry.pauses


def test_a_refused_request_does_not_wait() -> None:
    registry = Registry()
    registry.down_until, registry.error = 1.0, lambda: RequestRefused(403, 40301, "forbidden")
    with pytest.raises(RequestRefused):
        registry.outage(OnRegistryDown.WAIT).request(5, registry.schema)
    with pytest.raises(RegistryDownError, match="forbidden"):
        registry.outage(OnRegistryDown.FAIL).request(5, registry.schema)
    assert not registry.pauses


def test_the_other_policies_do_not_wait() -> None:
    registry = Registry()
    registry.down_until = 1.0
    with pytest.raises(RegistryUnavailable):
        registry.outage(OnRegistryDown.DEAD_LETTER).request(1, registry.schema)
    with pytest.raises(RegistryDownError, match=r"connection refused\. Nothing was written"):
        registry.outage(OnRegistryDown.FAIL).request(1, registry.schema)
    assert not registry.pauses
