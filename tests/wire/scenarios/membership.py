"""Shared by the group scenarios: a group member with its own connection, and the bodies of its requests."""

from typing import Any

from tests.wire.entities import Plain, encode_entity
from tests.wire.raw_client import RawConnection
from tests.wire.transcript import Wire

JOIN, SYNC, HEARTBEAT, LEAVE = 9, 5, 4, 5
SESSION_TIMEOUT_MS = 10_000


def subscription(*topics: str) -> bytes:
    return encode_entity("consumer_protocol_subscription", 1, {"topics": list(topics), "owned_partitions": []})


def join_body(group: str, member_id: str = "", **more: Any) -> Plain:
    # Use well-formed metadata: Kafka never answers a "consumer" join with unreadable metadata.
    protocols = more.pop("protocols", (("range", subscription("plain")),))
    return {
        "group_id": group,
        "session_timeout": SESSION_TIMEOUT_MS,
        "rebalance_timeout": 5_000,
        "member_id": member_id,
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": name, "metadata": metadata} for name, metadata in protocols],
        **more,
    }


class Member:
    """One group member. Records each step under its label."""

    def __init__(self, wire: Wire, group: str, label: str, *, instance: str | None = None, **join: Any) -> None:
        self.wire = wire
        self.group = group
        self.label = label
        self.instance = instance
        self.connection: RawConnection = wire.connect()
        self.member_id = ""
        self.generation = -1
        self._join = join

    def join_request(self, version: int = JOIN) -> Plain:
        return join_body(self.group, self.member_id, **{"group_instance_id": self.instance, **self._join})

    def join(self, version: int = JOIN) -> Plain:
        """Join and wait for the end of the rebalance. Rejoin with the assigned id after MEMBER_ID_REQUIRED."""
        answer = self._ask("join_group", version, self.join_request(version), "joins")
        if answer["error_code"] == "MEMBER_ID_REQUIRED":
            self.member_id = answer["member_id"]
            answer = self._ask("join_group", version, self.join_request(version), "joins with its id")
        self._took(answer)
        return answer

    def start_join(self, version: int = JOIN) -> None:
        """Send JoinGroup without waiting for the rebalance. `finish_join` receives the response."""
        if not self.member_id and self.instance is None and version >= 4:
            answer = self._ask("join_group", version, self.join_request(version), "asks for an id")
            self.member_id = answer["member_id"]
        self.connection.send("join_group", version, self.join_request(version))

    def finish_join(self, version: int = JOIN) -> Plain:
        answer = self.wire.receive(self.connection, "join_group", version, f"{self.label} has joined")
        self._took(answer)
        return answer

    def _took(self, answer: Plain) -> None:
        if answer.get("error_code") == "NONE":
            self.member_id = answer["member_id"]
            self.generation = answer["generation_id"]

    def sync_request(self, assignments: dict[str, bytes] | None = None) -> Plain:
        return {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [
                {"member_id": member, "assignment": assignment} for member, assignment in (assignments or {}).items()
            ],
        }

    def sync(self, assignments: dict[str, bytes] | None = None, version: int = SYNC, **more: Any) -> Plain:
        return self._ask("sync_group", version, {**self.sync_request(assignments), **more}, "syncs")

    def start_sync(self, assignments: dict[str, bytes] | None = None, version: int = SYNC) -> None:
        self.connection.send("sync_group", version, self.sync_request(assignments))

    def finish_sync(self, version: int = SYNC) -> Plain:
        return self.wire.receive(self.connection, "sync_group", version, f"{self.label} has synced")

    def heartbeat(self, version: int = HEARTBEAT, want: str | None = None, **more: Any) -> Plain:
        body = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            **more,
        }
        settled = None if want is None else lambda answer: answer["error_code"] == want
        label = f"{self.label} heartbeats"
        return self.wire.ask("heartbeat", version, body, label=label, on=self.connection, settled=settled)

    def leave(self, version: int = LEAVE) -> Plain:
        one = {"member_id": self.member_id, "group_instance_id": self.instance}
        body = {"group_id": self.group, "members": [one]} if version >= 3 else {"group_id": self.group, **one}
        if version < 3:
            body.pop("group_instance_id")
        return self._ask("leave_group", version, body, "leaves")

    def _ask(self, api: str, version: int, body: Plain, doing: str) -> Plain:
        return self.wire.ask(api, version, body, label=f"{self.label} {doing}", on=self.connection)


def stable_group(wire: Wire, part: str, *topics: str, instance: str | None = None) -> Member:
    """Create a stable group with one member, without recording steps."""
    group = wire.group(part)
    member = Member(wire, group, "A", instance=instance, protocols=(("range", subscription(*topics or ("plain",))),))
    steps = len(wire.steps)
    member.join()
    member.sync({member.member_id: b"everything"})
    del wire.steps[steps:]
    return member


def take_in(first: Member, second: Member) -> None:
    """Add a second member to a stable group and complete the rebalance."""
    second.start_join()
    first.heartbeat(want="REBALANCE_IN_PROGRESS")
    first.join()
    second.finish_join()
    second.start_sync()
    first.sync({first.member_id: b"of A", second.member_id: b"of B"})
    second.finish_sync()


def describe(wire: Wire, group: str, label: str) -> None:
    body = {"groups": [group], "include_authorized_operations": False}
    wire.ask("describe_groups", 5, body, label=label)
