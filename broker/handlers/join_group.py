"""JoinGroup, versions 0 to 9: enter a group and wait for its next generation.

From version 4 on a new dynamic member gets MEMBER_ID_REQUIRED with the id to join with. From version 5 on a member may
be static (`group_instance_id`). From version 9 on a returning static leader is told to skip the assignment. Version 0
has no rebalance timeout; the session timeout takes its place.

Deviations from Kafka: `group.initial.rebalance.delay.ms` is 0 unless set (Kafka's code says 3000, the configuration it
ships says 0): the first member of a group starts at once and later ones rebalance. A protocol named twice counts once,
more than 1000 are INVALID_REQUEST. Where as many members like one protocol best as another, the one that the earlier
member likes is taken; in Kafka it hangs on the hashes of their names.
An instance id longer than the journal can hold is INVALID_REQUEST. A JoinGroup that the same member has sent again over
another connection is answered with REBALANCE_IN_PROGRESS instead of never.
"""

import uuid
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from headgate.broker.protocol.entities import Answer, milliseconds
from headgate.broker.protocol.group_request_shapes import JoinGroupRequest
from headgate.broker.protocol.request_context import RequestContext
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.groups.messages import JoinRequest, JoinResult

if TYPE_CHECKING:
    from headgate.broker.node.broker import Broker

API_KEY = 11
VERSIONS = range(10)

FIRST_VERSION_WITH_REQUIRED_MEMBER_ID = 4
FIRST_VERSION_WITH_NULLABLE_PROTOCOL_NAME = 7
FIRST_VERSION_WITH_SKIPPED_ASSIGNMENT = 9

PROTOCOLS_MAX = 1_000
"""Assignors that one member offers. Clients have up to four."""


def handle(broker: "Broker", context: RequestContext, request: JoinGroupRequest) -> Answer | Deferred[Answer]:
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
        # A protocol may be named by nothing, which is told as none from the version on that can.
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
