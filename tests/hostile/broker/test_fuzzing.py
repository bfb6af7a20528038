"""Random requests for every API and version over TCP.

The broker answers each request or closes its connection, and keeps running. `HEADGATE_FUZZ_SEED` sets the seed.
"""

import os
import random
import struct
import uuid

from headgate.broker.dispatch.handler_table import HANDLERS
from tests.hostile.broker.request_fuzzing import TOPICS, RequestFuzzer
from tests.hostile.broker.witness import create_topic
from tests.live.headgate import HeadgateBroker
from tests.rounds import rounds
from tests.wire.raw_client import ConnectionClosed, RawConnection, request_header

CONNECTIONS = rounds(120, 5000)
SEED = int(os.environ.get("HEADGATE_FUZZ_SEED", "20250101"))
CORRELATION_ID_OF_THE_PROBE = 424_242
REQUESTS_PER_CONNECTION = 8
PROBE = request_header(18, 0, CORRELATION_ID_OF_THE_PROBE, flexible=False)
# The broker may delay responses to JoinGroup, SyncGroup and Fetch by design.
WAITING_APIS = frozenset({1, 11, 14})


def test_random_requests_are_answered_or_refused(attacked: HeadgateBroker) -> None:
    fuzzer = RequestFuzzer(random.Random(SEED))
    met: set[tuple[int, int]] = set()
    for number in range(CONNECTIONS):
        if number % 50 == 0:
            renew_topics(attacked, fuzzer)
        met |= one_connection(attacked, fuzzer, f"seed {SEED}, connection {number}")
    advertised = {(api_key, version) for api_key, handler in HANDLERS.items() for version in handler.versions}
    assert len(met) > len(advertised) * 0.6, f"{CONNECTIONS} connections met {len(met)} of {len(advertised)} versions"


def renew_topics(broker: HeadgateBroker, fuzzer: RequestFuzzer) -> None:
    """Create the topics again, because random requests delete topics."""
    with RawConnection(broker.address) as connection:
        for name in TOPICS:
            create_topic(connection, name, 2, cleanup_policy="compact" if "compacted" in name else "delete")
        answer = connection.ask("metadata", 12, {"topics": [{"name": name} for name in TOPICS]})
        fuzzer.topic_ids = [uuid.UUID(topic["topic_id"]) for topic in answer["topics"]]


def one_connection(broker: HeadgateBroker, fuzzer: RequestFuzzer, label: str) -> set[tuple[int, int]]:
    """Send a few requests and a probe. The broker must answer the probe or close the connection."""
    frames = [fuzzer.frame() for _ in range(REQUESTS_PER_CONNECTION)]
    waits = any(api_key in WAITING_APIS for api_key, _, _ in frames)
    with RawConnection(broker.address, 1.0 if waits else 15.0) as connection:
        try:
            connection.send_bytes(b"".join(struct.pack(">i", len(frame)) + frame for _, _, frame in frames))
            connection.send_frame(PROBE)
            while struct.unpack_from(">i", connection.receive_frame())[0] != CORRELATION_ID_OF_THE_PROBE:
                pass
        except ConnectionClosed:
            pass
        except TimeoutError:
            assert waits, f"{label}: no answer to one of {[(key, version) for key, version, _ in frames]}"
    return {(api_key, version) for api_key, version, _ in frames}
