"""ElectLeaders v0-2: Returns ELECTION_NOT_NEEDED, because each partition has one replica, which is its leader.

For all partitions (null), the response contains each topic without partitions.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import ElectLeadersRequest, RequestContext
from headgate.broker.runtime.time_slicing import Work

API_KEY = 43
VERSIONS = range(3)

_PREFERRED, _UNCLEAN = 0, 1


def handle(broker: Broker, context: RequestContext, request: ElectLeadersRequest) -> Work[Answer]:
    election = request.election_type
    is_known = election in (_PREFERRED, _UNCLEAN)
    wanted = request.topic_partitions
    results: list[Answer] = []
    if wanted is None and is_known:
        results += [{"topic": topic.name, "partition_result": ()} for topic in broker.topics.all()]
    for asked in wanted or ():
        partitions: list[Answer] = []
        for index in asked.partitions:
            yield
            code, message = _judge(broker, asked.topic, index, None if is_known else election)
            partitions.append({"partition_id": index, "error_code": code, "error_message": message})
        results.append({"topic": asked.topic, "partition_result": partitions})
    refused = not is_known and (wanted is None or len(wanted) > 0)
    code = ErrorCode.invalid_request if refused else ErrorCode.none
    return {"error_code": code, "replica_election_results": results}


# Messages omit the topic name: a small request can list many partitions of a topic with a long name.
def _judge(broker: Broker, name: str, index: int, unknown_election: int | None) -> tuple[ErrorCode, str | None]:
    if unknown_election is not None:
        return ErrorCode.invalid_request, f"Election type {unknown_election} is not known."
    topic = broker.topics.find(name)
    if topic is None:
        return ErrorCode.unknown_topic_or_partition, "There is no such topic."
    if not 0 <= index < len(topic.partitions):
        return ErrorCode.unknown_topic_or_partition, "The topic has no such partition."
    return ErrorCode.election_not_needed, "Leader election not needed for topic partition."
