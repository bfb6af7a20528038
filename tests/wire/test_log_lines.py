"""Log lines about misbehaving clients: they state the reason, and they are rate limited."""

from pathlib import Path

import pytest

from headgate.broker.runtime.log_rate_limit import lines_at_once_max
from tests.live.headgate import HeadgateBroker
from tests.wire.raw_client import ConnectionClosed, RawConnection

BAD_CONNECTIONS = lines_at_once_max + 300


def test_a_flood_of_bad_frames_is_not_a_flood_of_lines(tmp_path: Path) -> None:
    broker = HeadgateBroker(tmp_path)
    broker.start()
    try:
        for _ in range(BAD_CONNECTIONS):
            with RawConnection(broker.address) as connection:
                connection.send_bytes(b"\xff\xff\xff\xff")
                with pytest.raises(ConnectionClosed):
                    connection.receive_frame()
    finally:
        broker.stop()
    lines = (tmp_path / "broker.log").read_text().splitlines()
    closings = [line for line in lines if "closing connection" in line and "suppressed" not in line]
    suppressed = [int(line.partition("suppressed ")[2].split()[0]) for line in lines if "suppressed" in line]
    # New rate-limit intervals may begin during the test.
    assert lines_at_once_max <= len(closings) < BAD_CONNECTIONS
    assert len(closings) + sum(suppressed) == BAD_CONNECTIONS
    assert "socket.request.max.bytes" in closings[0]
