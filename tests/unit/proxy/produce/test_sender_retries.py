"""The sender retries a batch with the same sequence number, and writes each record once despite network faults."""

import asyncio

import pytest
from aiokafka import errors as kafka
from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import BrokerUnavailable
from headgate.proxy.errors import ProxyError
from headgate.proxy.producers.sender import Sender
from tests.unit.proxy.produce.fake_link import FakeLink
from tests.unit.proxy.produce.sending import keyed, record, run, sent


@pytest.mark.parametrize("error", [kafka.KafkaConnectionError("gone"), kafka.RequestTimedOutError()])
def test_a_batch_without_an_answer_goes_again_under_the_same_number(error: Exception) -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.lose(error)
        await sent(link, 2)
        assert link.sent[0] == link.sent[1]
        assert link.refreshes
        link.place(3)
        assert (await ticket.delivered()).offset == 3

    run(scenario)


def test_a_batch_given_up_in_doubt_takes_its_producer_id_with_it() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.lose(kafka.KafkaConnectionError("gone"))
        with pytest.raises(BrokerUnavailable, match="may have been written"):
            await ticket.delivered()
        (after,) = await sender.place("t", [record(b"2")])
        await sent(link, 2)
        link.place(1)
        await after.delivered()
        assert link.sent[0].producer_id != link.sent[1].producer_id
        assert link.sent[1].sequence == 0

    run(scenario, produce_timeout_ms=10)


def test_a_broker_that_forgot_the_producer_gets_the_batch_under_a_new_one() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.refuse(ErrorCode.out_of_order_sequence_number)
        await sent(link, 2)
        link.place(9)
        assert (await ticket.delivered()).offset == 9
        assert link.sent[0].producer_id != link.sent[1].producer_id
        assert link.sent[0].values == link.sent[1].values

    run(scenario)


def test_a_partition_without_a_leader_is_waited_for_and_then_given_up() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        link.leader_id = None
        (ticket,) = await sender.place("t", [record(b"1")])
        with pytest.raises(BrokerUnavailable, match="no leader"):
            await ticket.delivered()
        link.leader_id = 1
        (after,) = await sender.place("t", [record(b"2")])
        await sent(link, 1)
        link.place(0)
        assert (await after.delivered()).offset == 0

    run(scenario, produce_timeout_ms=200)


def test_a_first_attempt_that_is_called_a_duplicate_goes_again_under_a_new_producer_id() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.refuse(ErrorCode.duplicate_sequence_number)
        await sent(link, 2)
        assert link.sent[0].producer_id != link.sent[1].producer_id
        link.place(3)
        assert (await ticket.delivered()).offset == 3

    run(scenario)


def test_a_duplicate_of_an_attempt_in_doubt_is_written_at_an_unknown_offset() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.lose(kafka.KafkaConnectionError("gone"))
        await sent(link, 2)
        link.refuse(ErrorCode.duplicate_sequence_number)
        assert (await ticket.delivered()).offset == -1
        await sender.place("t", [record(b"2")])
        await sent(link, 3)
        assert link.sent[2].sequence == 1
        link.place(1)

    run(scenario)


@pytest.mark.parametrize(
    "error", [ErrorCode.kafka_storage_error, ErrorCode.not_leader_or_follower, ErrorCode.unknown_server_error]
)
def test_an_error_that_may_follow_the_append_leaves_the_batch_in_doubt(error: ErrorCode) -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.refuse(error)
        with pytest.raises(ProxyError, match="may have been written"):
            await ticket.delivered()
        await sender.place("t", [record(b"2")])
        await sent(link, 2)
        assert link.sent[0].producer_id != link.sent[1].producer_id, "the next batch would be taken for the first"
        link.place(0)

    run(scenario, produce_timeout_ms=10)


def test_a_batch_in_doubt_whose_partition_loses_its_leader_takes_its_producer_id_with_it() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.leader_id = None
        link.lose(kafka.KafkaConnectionError("gone"))
        with pytest.raises(BrokerUnavailable, match="may have been written"):
            await ticket.delivered()
        link.leader_id = 1
        await sender.place("t", [record(b"2")])
        await sent(link, 2)
        assert link.sent[0].producer_id != link.sent[1].producer_id
        link.place(0)

    run(scenario, produce_timeout_ms=250)


def test_batches_that_waited_past_their_deadline_are_given_up_unsent() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (first,) = keyed(sender, 7, 0, record(b"1"))
        waiting = [keyed(sender, 8 + number, 0, record(b"late"))[0] for number in range(5)]
        await sent(link, 1)
        await asyncio.sleep(0.03)
        link.place(0)
        await first.delivered()
        for ticket in waiting:
            with pytest.raises(BrokerUnavailable, match="longer than the delivery timeout of 10 ms"):
                await ticket.delivered()
        assert len(link.sent) == 1
        assert sender.pending_bytes == 0

    run(scenario, produce_timeout_ms=10, kafka_request_timeout_ms=10)


def test_a_response_that_leaves_a_partition_out_is_no_acknowledgement() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.answers[-1].set_result({})
        await sent(link, 2)
        assert link.sent[0] == link.sent[1]
        link.place(0)
        assert (await ticket.delivered()).offset == 0

    run(scenario)
