"""Many members in random order: some crash, some are slow, some leave, and time passes. The seed replays a failure.

The clients follow the protocol. Each response is checked:

- Generations only grow.
- Every member of a generation gets the assignment of that generation's leader.
- A member that acts in time is never unknown.
- No member waits forever.
- The group becomes stable when the disturbances end.
"""

import random
from collections.abc import Callable
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.groups.messages import JoinResult, SyncResult
from tests.unit.broker.groups.driver import Cluster, subscription
from tests.unit.broker.groups.group_settings import GroupSettings

STEPS = 500
SEEDS = range(40)
HEARTBEAT_MS = 1_000
SESSION_MS = 6_000
REBALANCE_MS = 9_000


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        settings = GroupSettings(
            group_initial_rebalance_delay_ms=self.random.choice([0, 0, 1_000]),
            # Disable the expiration of empty groups: a new group would restart its generations.
            offsets_retention_check_interval_ms=10**12,
        )
        self.cluster = Cluster(settings)
        self.cluster.journal.lands_at_once = False
        self.clients: list[Client] = []
        self.waiting: set[Deferred[JoinResult] | Deferred[SyncResult]] = set()
        self.assigned: dict[int, dict[str, bytes]] = {}
        """Assignments from the leader, by generation."""
        self.leaders: dict[int, str] = {}
        self.newest_generation = 0

    def pass_time(self, milliseconds: int) -> None:
        while milliseconds > 0:
            step = min(milliseconds, 100)
            milliseconds -= step
            self.cluster.advance(step)
            for client in list(self.clients):
                client.on_time()
            if self.random.random() < 0.7:
                self.cluster.journal.land()

    def learn_generation(self, result: JoinResult) -> None:
        assert result.generation_id >= self.newest_generation, "an answer of a generation that is over"
        self.newest_generation = result.generation_id
        # A static leader that rejoins stays the leader under a new member id.
        leader = result.leader if result.leader.startswith("client-") else result.leader[: -len("-" + str(UUID(int=0)))]
        assert self.leaders.setdefault(result.generation_id, leader) == leader, "two leaders in one generation"


class Client:
    """Sends a heartbeat every second unless it is slow. Rejoins when the coordinator asks for it."""

    def __init__(self, world: World, name: str, version: int, instance: str | None = None) -> None:
        self.world = world
        self.name = name
        self.version = version
        self.instance = instance
        self.member_id = ""
        self.generation_id = -1
        self.is_slow = False
        self.is_gone = False
        self.was_slow = False
        self.assignment: bytes | None = None
        self.is_asking = False
        self.last_heartbeat_ms = world.cluster.clock.monotonic_ms()
        self.join()

    def join(self) -> None:
        self.assignment = None
        self.is_asking = True
        self._ask(
            self.world.cluster.join(
                self.member_id,
                instance=self.instance,
                protocols={"range": subscription("topic"), self.name: b""},
                session_ms=SESSION_MS,
                rebalance_ms=REBALANCE_MS,
                version=self.version,
            ),
            self.on_join,
        )

    def on_join(self, result: JoinResult) -> None:
        if result.error is ErrorCode.member_id_required:
            self.member_id = result.member_id
            self.join()
        elif result.error is ErrorCode.unknown_member_id:
            self.on_unknown()
        elif result.error is ErrorCode.rebalance_in_progress:
            self.join()
        else:
            assert result.error is ErrorCode.none, result
            self.world.learn_generation(result)
            self.member_id, self.generation_id = result.member_id, result.generation_id
            assignments = {each.member_id: f"{self.generation_id}/{each.member_id}".encode() for each in result.members}
            if result.members and not result.skip_assignment:
                self.world.assigned[self.generation_id] = assignments
            self.sync(assignments)

    def sync(self, assignments: dict[str, bytes]) -> None:
        generation_id = self.generation_id
        synced = self.world.cluster.sync(self.member_id, generation_id, assignments, instance=self.instance)
        self._ask(synced, lambda result: self.on_sync(result, generation_id))

    def on_sync(self, result: SyncResult, generation_id: int) -> None:
        if result.error is ErrorCode.none:
            self.is_asking = False
            self.was_slow = self.is_slow
            self.assignment = result.assignment
            assert result.assignment.startswith(f"{generation_id}/".encode()), "an assignment of another generation"
            assert self.instance is not None or result.assignment == f"{generation_id}/{self.member_id}".encode()
        elif result.error is ErrorCode.unknown_member_id:
            self.on_unknown()
        else:
            assert result.error in (ErrorCode.rebalance_in_progress, ErrorCode.illegal_generation), result
            assert result.error is ErrorCode.rebalance_in_progress or self.was_slow or self.instance
            self.join()

    def on_time(self) -> None:
        now_ms = self.world.cluster.clock.monotonic_ms()
        if self.is_gone or self.is_slow or self.is_asking or now_ms - self.last_heartbeat_ms < HEARTBEAT_MS:
            return
        self.last_heartbeat_ms = now_ms
        error = self.world.cluster.heartbeat(self.member_id, self.generation_id, self.instance)
        if error is ErrorCode.unknown_member_id:
            self.on_unknown()
        elif error is ErrorCode.illegal_generation:
            assert self.was_slow, f"{self.name} is of another generation though it acted in time"
            self.join()
        elif error is ErrorCode.rebalance_in_progress:
            self.join()
        else:
            assert error is ErrorCode.none, error

    def on_unknown(self) -> None:
        assert self.was_slow, f"{self.name} is unknown though it acted in time"
        self.was_slow = False
        self.member_id, self.generation_id = "", -1
        self.join()

    def leave(self) -> None:
        self.is_gone = True
        if self.member_id and not self.is_asking:
            self.world.cluster.leave(self.member_id, self.instance)

    def _ask(self, deferred: Deferred, callback: Callable) -> None:  # type: ignore[type-arg]  # joins and syncs alike
        self.world.waiting.add(deferred)

        def answered(result: JoinResult | SyncResult) -> None:
            self.world.waiting.discard(deferred)
            if not self.is_gone:
                callback(result)

        deferred.then(answered)


def chaos(world: World) -> None:
    draw = world.random
    present = [client for client in world.clients if not client.is_gone]
    what = draw.random()
    if what < 0.12 and len(present) < 8:
        world.clients.append(Client(world, f"client-{len(world.clients)}", draw.choice([0, 3, 4, 5, 9])))
    elif what < 0.16 and present:
        draw.choice(present).is_gone = True
    elif what < 0.21 and present:
        draw.choice(present).leave()
    elif what < 0.25 and present:
        sleeper = draw.choice(present)
        sleeper.is_slow = sleeper.was_slow = True
    elif what < 0.35:
        for client in present:
            client.is_slow = False
    elif what < 0.38 and present:
        willing = [client for client in present if not client.is_asking and not client.is_slow]
        if willing:
            draw.choice(willing).join()
    elif what < 0.5 and world.cluster.journal.waiting_count:
        world.cluster.journal.land(1)
    elif what < 0.55:
        world.pass_time(draw.randrange(15_000))
    else:
        world.pass_time(draw.randrange(1_500))


@pytest.mark.parametrize("seed", SEEDS)
def test_members_in_any_order_agree_and_are_never_lost(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        chaos(world)

    for client in world.clients:
        client.is_slow = False
    world.pass_time(60_000)
    world.clients.append(Client(world, "last", 5))
    world.pass_time(60_000)
    world.cluster.journal.land()

    present = [client for client in world.clients if not client.is_gone]
    assert world.cluster.state == "Stable"
    assert {each.member_id for each in world.cluster.describe().members} == {each.member_id for each in present}
    assert {client.generation_id for client in present} == {world.newest_generation}
    assert all(client.assignment for client in present)
    assert world.waiting == set()

    restarted = world.cluster.restarted()
    assert restarted.describe() == world.cluster.describe()

    for client in world.clients:
        client.is_gone = True
    world.pass_time(60_000)
    world.cluster.journal.land()
    assert world.cluster.state == "Empty"


@pytest.mark.parametrize("seed", SEEDS)
def test_static_members_that_come_back_keep_the_group_together(seed: int) -> None:
    world = World(seed)
    names = [f"instance-{number}" for number in range(4)]
    world.clients = [Client(world, name, world.random.choice([5, 8, 9]), instance=name) for name in names]
    for _ in range(100):
        world.pass_time(world.random.randrange(1_500))
        at = world.random.randrange(len(world.clients))
        if world.random.random() < 0.3:
            restarting = world.clients[at]
            restarting.is_gone = True
            world.clients[at] = Client(world, restarting.name, restarting.version, instance=restarting.instance)
    world.pass_time(30_000)
    world.cluster.journal.land()
    world.pass_time(30_000)
    assert world.cluster.state == "Stable"
    assert {each.group_instance_id for each in world.cluster.describe().members} == set(names)
    assert {each.member_id for each in world.cluster.describe().members} == {each.member_id for each in world.clients}
    assert {client.generation_id for client in world.clients} == {world.newest_generation}
    assert world.waiting == set()
