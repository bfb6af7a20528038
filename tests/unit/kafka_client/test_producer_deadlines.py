"""How long the producer retries and waits: deadlines, backoff, closing."""

import asyncio

import pytest
from aiokafka import errors as kafka
from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import BrokerUnavailable, ProducerClosed, RetriableError
from headgate.kafka_client.producer.connection import Placed
from headgate.kafka_client.producer.producer import Producer
from tests.unit.kafka_client.dispatching import Clock, ManyLeaders, placed, put, run
from tests.unit.proxy.produce.sending import sent, settle


@pytest.mark.parametrize("seconds", [0.75, 0.7501])
def test_an_unsent_batch_may_wait_for_one_request_longer_than_its_deadline(clock: Clock, seconds: float) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        first = put(producer, 0)
        await sent(link, 1)
        second = put(producer, 0)
        clock.now = seconds
        link.answers[-1].set_result(placed(0))
        await first.delivered()
        if seconds == 0.75:
            await sent(link, 2)
            link.answers[-1].set_result(placed(0))
            await second.delivered()
        else:
            with pytest.raises(BrokerUnavailable, match="longer than the delivery timeout of 500 ms"):
                await second.delivered()
            assert len(link.sent) == 1

    run(scenario, delivery_timeout_ms=500)


@pytest.mark.parametrize("late", [0.0, 2**-20])
def test_a_batch_is_retried_until_its_deadline(clock: Clock, late: float) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        ticket = put(producer, 0)
        await sent(link, 1)
        # The pause after the first attempt is twice the shortest pause.
        clock.now = 0.5 - 2**-9 + late
        link.lose(kafka.NodeNotReadyError())
        if late:
            with pytest.raises(BrokerUnavailable):
                await ticket.delivered()
        else:
            await sent(link, 2)
            link.answers[-1].set_result(placed(0))
            await ticket.delivered()
        assert len(link.sent) == (1 if late else 2)

    run(scenario, delivery_timeout_ms=500)


@pytest.mark.parametrize("late", [0.0, 2**-20])
def test_a_retry_after_the_deadline_is_not_sent(clock: Clock, late: float) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        ticket = put(producer, 0)
        await sent(link, 1)
        link.lose(kafka.KafkaConnectionError())
        while not ticket.batch.attempts:  # noqa: ASYNC110  # a batch has no event
            await asyncio.sleep(0)
        clock.now = 0.5 + late
        if late:
            with pytest.raises(BrokerUnavailable, match=r"longer than the delivery timeout.*may have been written"):
                await ticket.delivered()
        else:
            await sent(link, 2)
            link.answers[-1].set_result(placed(0))
            await ticket.delivered()

    run(scenario, delivery_timeout_ms=500)


def test_pauses_double_up_to_a_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        ticket = put(producer, 0)
        for attempt in range(7):
            while len(link.sent) <= attempt:
                await sleep(0)
            link.answers[-1].set_result({("t", 0): Placed(ErrorCode.not_enough_replicas, -1, None)})
        while len(link.sent) < 8:
            await sleep(0)
        link.answers[-1].set_result(placed(0))
        await ticket.delivered()

    monkeypatch.setattr(asyncio, "sleep", noted)
    run(scenario)
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0])


def test_a_failed_partition_pauses_once_for_all_its_failed_neighbours(clock: Clock) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        tickets = [put(producer, 0), put(producer, 1)]
        await sent(link, 2)
        link.lose(kafka.KafkaConnectionError())
        await sent(link, 4)
        assert (len(link.answers), link.refreshes) == (2, 1)
        link.answers[-1].set_result(placed(0, 1))
        for ticket in tickets:
            await ticket.delivered()

    run(scenario)


@pytest.mark.parametrize("late", [0.0, 2**-20])
def test_records_wait_for_a_leader_until_their_deadline(clock: Clock, late: float) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        link.is_down = True
        ticket = put(producer, 3)
        clock.now = 0.5 + late
        if late:
            with pytest.raises(BrokerUnavailable, match="Partition 3 of t has no leader"):
                await ticket.delivered()
        else:
            while link.refreshes < 2:  # noqa: ASYNC110  # the fake link has no event
                await asyncio.sleep(0.001)
            link.is_down = False
            await sent(link, 1)
            link.answers[-1].set_result(placed(3))
            await ticket.delivered()

    run(scenario, delivery_timeout_ms=500)


def test_a_closing_producer_does_not_retry() -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        ticket = put(producer, 0)
        await sent(link, 1)
        closing = asyncio.ensure_future(producer.close())
        await settle()
        link.answers[-1].set_result({("t", 0): Placed(ErrorCode.not_enough_replicas, -1, None)})
        with pytest.raises(RetriableError, match="Too few replicas"):
            await ticket.delivered()
        await closing
        assert len(link.sent) == 1

    run(scenario, close_timeout_ms=8_000)


@pytest.mark.parametrize("is_sent", [False, True])
def test_without_time_to_close_batches_in_flight_may_have_been_written(clock: Clock, is_sent: bool) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        link.is_down = not is_sent
        ticket = put(producer, 0)
        if is_sent:
            await sent(link, 1)
        await settle()
        await producer.close()
        with pytest.raises(ProducerClosed, match="was closed before") as caught:
            await ticket.delivered()
        assert ("may have been written" in str(caught.value)) is is_sent
        assert producer.pending_bytes == 0

    run(scenario)


def test_a_closing_producer_sends_records_that_are_not_flushed_yet() -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        ticket = put(producer, 0)
        closing = asyncio.ensure_future(producer.close())
        await sent(link, 1)
        link.answers[-1].set_result(placed(0))
        await closing
        assert (await ticket.delivered()).offset == 0

    run(scenario, close_timeout_ms=5_000)
