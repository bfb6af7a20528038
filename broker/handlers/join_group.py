"""JoinGroup v0-9: Adds a member to a group and returns the next generation.

- v0 has no rebalance timeout. The session timeout is used instead.
- v4+: a new dynamic member gets MEMBER_ID_REQUIRED and its member id (KIP-394).
- v5+: a member can be static (`group_instance_id`, KIP-345).
- v9+: a static leader that rejoins gets `skip_assignment` (KIP-814).

Deviations:
- `group.initial.rebalance.delay.ms` is not set
  Kafka: 3000 in the code, 0 in the default configuration file.
  Headgate: 0. The first member starts at once, and later members cause a rebalance.
- A protocol that occurs twice
  Kafka: Never responds.
  Headgate: Keeps the first entry.
- More than 1,000 protocols
  Kafka: Accepts them.
  Headgate: INVALID_REQUEST
- Two protocols with the same number of votes
  Kafka: The choice depends on the hash values of their names.
  Headgate: Chooses the protocol that the earlier member prefers.
- A `group_instance_id` that is too long for the group's journal
  Kafka: Accepts it.
  Headgate: INVALID_REQUEST
- The same member sends JoinGroup again on another connection
  Kafka: Never responds to the first request.
  Headgate: REBALANCE_IN_PROGRESS for the first request.
"""

import uuid

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.entities import milliseconds
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import JoinGroupRequest, RequestContext
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.groups.messages import JoinRequest, JoinResult

API_KEY = 11
VERSIONS = range(10)

FIRST_VERSION_WITH_REQUIRED_MEMBER_ID = 4
FIRST_VERSION_WITH_NULLABLE_PROTOCOL_NAME = 7
FIRST_VERSION_WITH_SKIPPED_ASSIGNMENT = 9

PROTOCOLS_MAX = 1_000
"""Assignors that one member offers. Clients have up to four."""


def handle(broker: Broker, context: RequestContext, request: JoinGroupRequest) -> Answer | Deferred[Answer]:
    version = context.api_version
    no_protocol = None if version >= FIRST_VERSION_WITH_NULLABLE_PROTOCOL_NAME else ""
    if len(request.protocols) > PROTOCOLS_MAX:
        return render(JoinResult(ErrorCode.invalid_request, request.member_id), no_protocol)
    session_timeout_ms = milliseconds(request.session_timeout)
    protocols: dict[str, bytes] = {}
    for protocol in request.protocols:
        protocols.setdefault(protocol.name, bytes(protocol.metadata))
    join = JoinRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        client_id=context.client_id or "",
        client_host=f"/{context.client_host}",
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=session_timeout_ms if version == 0 else milliseconds(request.rebalance_timeout),
        protocol_type=request.protocol_type,
        protocols=protocols,
        member_id_required=version >= FIRST_VERSION_WITH_REQUIRED_MEMBER_ID,
        may_skip_assignment=version >= FIRST_VERSION_WITH_SKIPPED_ASSIGNMENT,
        unique_id=uuid.uuid4(),
    )
    return broker.groups.join(join).map(lambda result: render(result, no_protocol))


def render(result: JoinResult, no_protocol: str | None) -> Answer:
    return {
        "error_code": result.error,
        "generation_id": result.generation_id,
        "protocol_type": result.protocol_type,
        # An empty protocol name becomes null in versions that allow null.
        "protocol_name": result.protocol_name or no_protocol,
        "leader": result.leader,
        "skip_assignment": result.skip_assignment,
        "member_id": result.member_id,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "metadata": member.metadata,
            }
            for member in result.members
        ],
    }
