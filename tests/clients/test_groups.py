"""Consumer groups with each client: rebalances when members join and leave, commits, resuming, static members."""

from collections.abc import Sequence

import pytest
from confluent_kafka import Consumer, KafkaError

from tests.clients.client import Client, Member, Sent
from tests.clients.confluent import ConfluentClient
from tests.clients.conftest import CLIENTS, MakeTopic
from tests.clients.waiting import eventually
from tests.live.headgate import HeadgateBroker

PARTITIONS = 6
# aiokafka has no cooperative assignor.
STRATEGIES = [(name, "eager") for name in CLIENTS] + [
    ("confluent-kafka", "cooperative"),
    ("kafka-python", "cooperative"),
]


def shared(members: Sequence[Member], partitions: int = PARTITIONS) -> bool:
    """Return whether every partition has exactly one member, and every member has a partition."""
    parts = [member.assignment() for member in members]
    return (
        all(parts) and sum(len(part) for part in parts) == partitions and len(frozenset().union(*parts)) == partitions
    )


def test_a_group_resumes_where_it_committed(client: Client, topic: str, group: str) -> None:
    client.produce(topic, [Sent(f"{i}".encode()) for i in range(20)])
    first = client.join(group, topic)
    try:
        eventually(lambda: len(first.received()) == 20, "all records arrive")
        assert first.committed(0) is None
        first.commit(0, 12, "half-way")
        assert first.committed(0) == (12, "half-way" if client.name != "aiokafka" else "")
    finally:
        first.close()
    second = client.join(group, topic)
    try:
        eventually(lambda: len(second.received()) == 8, "the rest arrives")
        assert [record.offset for record in second.received()] == list(range(12, 20))
    finally:
        second.close()


def test_automatic_commits_are_kept(client: Client, topic: str, group: str) -> None:
    client.produce(topic, [Sent(f"{i}".encode()) for i in range(5)])
    first = client.join(group, topic, commits=True)
    try:
        eventually(lambda: len(first.received()) == 5, "all records arrive")
        eventually(lambda: (first.committed(0) or (0, ""))[0] == 5, "the commit is seen")
    finally:
        first.close()
    client.produce(topic, [Sent(b"next")])
    second = client.join(group, topic, commits=True)
    try:
        eventually(lambda: len(second.received()) == 1, "only the next arrives")
        assert [record.value for record in second.received()] == [b"next"]
    finally:
        second.close()


@pytest.mark.parametrize(("library", "strategy"), STRATEGIES, ids=[f"{name}-{how}" for name, how in STRATEGIES])
def test_members_share_the_partitions_as_they_come_and_go(
    broker_address: str, library: str, strategy: str, make_topic: MakeTopic, group: str
) -> None:
    client = CLIENTS[library](broker_address)
    topic = make_topic(PARTITIONS)
    members: list[Member] = []
    sent = 0

    def send() -> None:
        nonlocal sent
        client.produce(topic, [Sent(f"{sent + i}".encode(), partition=i) for i in range(PARTITIONS)])
        sent += PARTITIONS

    try:
        for count in (1, 2, 3):
            members.append(client.join(group, topic, strategy=strategy))
            eventually(lambda: shared(members), f"{count} members share all partitions")
            send()
        leaving = members.pop(0)
        gone = leaving.received()
        leaving.close()
        gone = leaving.received()
        eventually(lambda: shared(members), "the two that are left share all partitions")
        send()

        def all_arrived() -> bool:
            values = {record.value for record in gone}
            for member in members:
                values |= {record.value for record in member.received()}
            return values == {f"{i}".encode() for i in range(sent)}

        eventually(all_arrived, "every record is with some member")
    finally:
        for member in members:
            member.close()
        client.close()


def test_a_static_member_comes_back_without_a_rebalance(client: Client, make_topic: MakeTopic, group: str) -> None:
    topic = make_topic(PARTITIONS)
    stays = client.join(group, topic, instance="stays")
    returns = client.join(group, topic, instance="returns")
    try:
        eventually(lambda: shared([stays, returns]), "both share all partitions")
        kept, before = returns.assignment(), stays.rebalances()
        # librdkafka, kafka-python and aiokafka, like Java, send no LeaveGroup for a static member.
        returns.close()
        returns = client.join(group, topic, instance="returns")
        eventually(lambda: returns.assignment() == kept, "it has its partitions back")
        client.produce(topic, [Sent(f"{i}".encode(), partition=i) for i in range(PARTITIONS)])
        eventually(
            lambda: {record.partition for record in stays.received() + returns.received()} == set(range(PARTITIONS)),
            "every partition is read",
        )
        assert stays.rebalances() == before, "the member that stayed saw a rebalance"
    finally:
        stays.close()
        returns.close()


def test_two_groups_read_the_same_records(client: Client, topic: str, group: str) -> None:
    client.produce(topic, [Sent(f"{i}".encode()) for i in range(5)])
    members = [client.join(f"{group}-{i}", topic) for i in range(2)]
    try:
        for member in members:
            eventually(lambda member=member: len(member.received()) == 5, "a group sees all")  # type: ignore[misc] # a default argument
    finally:
        for member in members:
            member.close()


def test_members_of_different_libraries_share_a_group(broker_address: str, make_topic: MakeTopic, group: str) -> None:
    topic = make_topic(PARTITIONS)
    clients = [make(broker_address) for make in CLIENTS.values()]
    members: list[Member] = []
    try:
        for client in clients:
            members.append(client.join(group, topic))
            eventually(lambda: shared(members), "all partitions are shared")
        clients[0].produce(topic, [Sent(f"{i}".encode(), partition=i) for i in range(PARTITIONS)])
        eventually(
            lambda: sum(len(member.received()) for member in members) == PARTITIONS, "each record arrives exactly once"
        )
    finally:
        for member in members:
            member.close()
        for client in clients:
            client.close()


@pytest.mark.parametrize("strategy", ["eager", "cooperative"])
def test_many_members_that_come_and_go_at_once_settle(
    broker_address: str, make_topic: MakeTopic, group: str, strategy: str
) -> None:
    # A member that closes during a join stays in the group until its session expires.
    client = ConfluentClient(broker_address, session_timeout_ms=10_000)
    topic = make_topic(12)
    members = [client.join(group, topic, strategy=strategy) for _ in range(6)]
    try:
        # Half of the members leave while the first rebalance may still run, and new members replace them.
        for _ in range(2):
            for member in members[:3]:
                member.close()
            members = members[3:] + [client.join(group, topic, strategy=strategy) for _ in range(3)]
        eventually(lambda: shared(members, 12), "six members share twelve partitions")
        client.produce(topic, [Sent(f"{i}".encode(), partition=i) for i in range(12)])
        eventually(
            lambda: (
                {record.value for member in members for record in member.received()}
                == {f"{i}".encode() for i in range(12)}
            ),
            "every record arrives",
        )
    finally:
        for member in members:
            member.close()
        client.close()


def test_a_consumer_of_the_new_group_protocol_fails_at_once(headgate_broker: HeadgateBroker, group: str) -> None:
    settings = {"bootstrap.servers": headgate_broker.address, "group.id": group, "group.protocol": "consumer"}
    consumer = Consumer({**settings, "log_level": 0})
    try:
        consumer.subscribe(["absent"])
        message = consumer.poll(60)
        error = message.error() if message is not None else None
        assert error is not None
        assert error.code() == KafkaError._FATAL
        assert "ConsumerGroupHeartbeat" in error.str()
    finally:
        consumer.close()
