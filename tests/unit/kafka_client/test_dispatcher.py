"""The dispatcher of the producer: requests per broker, request size, producer ids, errors."""

import pytest
from aiokafka import errors as kafka

from headgate.kafka_client.errors import BrokerUnavailable, TopicNotFound
from headgate.kafka_client.producer import dispatcher
from headgate.kafka_client.producer.producer import Producer
from headgate.kafka_client.producer.records import Delivered, OutgoingRecord, ProducerIdentity
from tests.unit.kafka_client.dispatching import Clock, ManyLeaders, placed, put, run
from tests.unit.proxy.produce.sending import sent, settle


def test_a_broker_has_one_request_in_flight_and_brokers_do_not_wait_for_each_other() -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        first = put(producer, 0)
        await sent(link, 1)
        same_node, other_node = put(producer, 1), put(producer, 2)
        await settle()
        assert [each.partition for each in link.sent] == [0, 2]
        link.answers[0].set_result(placed(0))
        await sent(link, 3)
        assert link.sent[2].partition == 1
        link.answers[2].set_result(placed(1))
        link.answers[1].set_result(placed(2))
        for ticket in (first, same_node, other_node):
            assert (await ticket.delivered()).offset == 0

    run(scenario)


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_partition_with_a_new_leader_waits_for_its_batch_in_flight(clock: Clock, is_lost: bool) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        first = put(producer, 0)
        await sent(link, 1)
        link.first_node = 7
        second = put(producer, 0)
        await settle()
        assert len(link.sent) == 1
        if is_lost:
            link.lose(kafka.KafkaConnectionError())
            await sent(link, 2)
            assert link.sent[1] == link.sent[0]
        link.answers[-1].set_result(placed(0))
        await first.delivered()
        await sent(link, 3 if is_lost else 2)
        link.answers[-1].set_result(placed(0))
        await second.delivered()

    run(scenario)


def test_the_records_of_one_iteration_share_a_request_per_broker() -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        for partition in range(6):
            put(producer, partition)
        await settle()
        assert (len(link.sent), len(link.answers)) == (6, 3)

    run(scenario)


@pytest.mark.parametrize(("extra", "requests"), [(0, [2, 1]), (-1, [1, 1, 1]), (10**6, [3])])
def test_a_request_has_a_maximum_size(monkeypatch: pytest.MonkeyPatch, extra: int, requests: list[int]) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        monkeypatch.setattr(ManyLeaders, "leader", lambda *_: 1)
        tickets = [put(producer, partition, bytes(100)) for partition in range(3)]
        monkeypatch.setattr(dispatcher, "request_bytes_max", 2 * tickets[0].batch.bytes + extra)
        counts: list[int] = []
        while sum(counts) < 3:
            before = sum(counts)
            await sent(link, before + 1)
            counts.append(len(link.sent) - before)
            link.answers[-1].set_result(placed(*range(before, len(link.sent))))
        assert counts == requests
        for ticket in tickets:
            await ticket.delivered()

    run(scenario)


def test_a_batch_may_be_larger_than_the_maximum_size_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "request_bytes_max", 1)

    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        ticket = put(producer, 0)
        await sent(link, 1)
        link.answers[-1].set_result(placed(0))
        await ticket.delivered()

    run(scenario)


@pytest.mark.parametrize(
    ("error", "in_doubt"), [(kafka.NodeNotReadyError(), False), (kafka.KafkaConnectionError(), True)]
)
def test_only_a_request_that_was_sent_may_have_been_written(clock: Clock, error: Exception, in_doubt: bool) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        ticket = put(producer, 0)
        await sent(link, 1)
        clock.now = 0.5
        link.lose(error)
        with pytest.raises(BrokerUnavailable) as caught:
            await ticket.delivered()
        assert ("may have been written" in str(caught.value)) is in_doubt
        later = put(producer, 0)
        await sent(link, 2)
        assert (link.sent[1].producer_id != link.sent[0].producer_id) is in_doubt
        link.answers[-1].set_result(placed(0))
        await later.delivered()

    run(scenario, delivery_timeout_ms=500)


def test_an_attempt_that_was_not_sent_does_not_remove_the_doubt_of_an_earlier_one(clock: Clock) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        ticket = put(producer, 0)
        await sent(link, 1)
        link.lose(kafka.KafkaConnectionError())
        await sent(link, 2)
        clock.now = 0.5
        link.lose(kafka.NodeNotReadyError())
        with pytest.raises(BrokerUnavailable, match="may have been written"):
            await ticket.delivered()

    run(scenario, delivery_timeout_ms=500)


def test_without_a_producer_id_nothing_was_sent(clock: Clock) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        link.identity_error = BrokerUnavailable("no id")
        clock.now = 0.5
        ticket = put(producer, 0)
        ticket.batch.deadline = 0.5
        with pytest.raises(BrokerUnavailable) as caught:
            await ticket.delivered()
        assert str(caught.value) == "no id"
        assert link.sent == []

    run(scenario)


def test_keyed_batches_need_no_shared_producer_id() -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        link.identity_error = BrokerUnavailable("no id")
        ((ticket,),) = producer.build("t", [(0, [OutgoingRecord(None, b"v")])])
        producer.send_as(ProducerIdentity(7, 3), 5, ticket.batch, may_be_written=False)
        await sent(link, 1)
        assert (link.sent[0].producer_id, link.sent[0].sequence) == (7, 5)
        link.answers[-1].set_result(placed(0))
        await ticket.delivered()

    run(scenario)


def test_the_failure_of_an_old_producer_id_does_not_renew_its_successor(clock: Clock) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        old = [put(producer, 0), put(producer, 2)]
        await sent(link, 2)
        clock.now = 1.0
        for number in range(2):
            link.answers[number].set_exception(kafka.KafkaConnectionError())
            with pytest.raises(BrokerUnavailable):
                await old[number].delivered()
            later = put(producer, 4)
            await sent(link, 3 + number)
            link.answers[-1].set_result(placed(4))
            await later.delivered()
        assert [each.producer_id for each in link.sent] == [100, 100, 101, 101]
        assert [each.sequence for each in link.sent[2:]] == [0, 1]

    run(scenario, delivery_timeout_ms=500)


def test_a_partition_without_a_leader_is_looked_up_once_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        link.is_down = True
        tickets = []
        for _ in range(5):
            tickets.append(put(producer, 0))
            await settle()
        assert link.refreshes == 1
        link.is_down = False
        await sent(link, 1)
        assert len(link.sent[0].values) == 5
        link.answers[-1].set_result(placed(0))
        for ticket in tickets:
            await ticket.delivered()

    run(scenario)


@pytest.mark.parametrize("is_deleted", [False, True])
def test_the_error_of_a_missing_topic_does_not_mention_written_records(clock: Clock, is_deleted: bool) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        ticket = put(producer, 0)
        await sent(link, 1)
        link.is_down = True
        link.partition_count = 6
        if is_deleted:
            link.known_partitions = lambda topic: None  # type: ignore[method-assign]
        else:
            ticket.batch.deadline = 0.25
        link.lose(kafka.KafkaConnectionError())
        await settle()
        clock.now = 0.0 if is_deleted else 0.5
        with pytest.raises(TopicNotFound if is_deleted else BrokerUnavailable) as caught:
            await ticket.delivered()
        assert ("may have been written" in str(caught.value)) is not is_deleted

    run(scenario)


@pytest.mark.parametrize(("at_ms", "expected"), [(77, 77), (None, 1)])
def test_the_append_time_of_the_broker_replaces_the_timestamp(at_ms: int | None, expected: int) -> None:
    async def scenario(link: ManyLeaders, producer: Producer) -> None:
        ticket = put(producer, 0)
        await sent(link, 1)
        link.answers[-1].set_result(placed(0, at_ms=at_ms))
        assert await ticket.delivered() == Delivered(0, 0, expected)

    run(scenario)
