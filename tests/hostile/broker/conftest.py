"""A broker under attack, and the checks after each attack: it runs, lost no records, and logged no traceback."""

from collections.abc import Iterator

import pytest

from tests.hostile.broker.witness import Witness, log_of, resident_bytes
from tests.live.headgate import HeadgateBroker
from tests.wire.raw_client import RawConnection

# An idle broker uses about 60 MB, or 100 MB with many connections. The broker holds the largest request (100 MiB)
# twice: as the frame and as its batch. A decompression bomb inflates to at most 128 MiB.
RESIDENT_BYTES_MAX = 700 * 1024 * 1024


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateBroker]:
    """One broker per test file, so that each attack also meets the effects of earlier attacks."""
    running = HeadgateBroker(tmp_path_factory.mktemp("hostile"), {"num.partitions": "1"})
    running.start()
    yield running
    assert running.stop() == 0, log_of(running)[-4000:]
    # The next start is clean and fast: recovery truncates and repairs nothing.
    before = len(log_of(running))
    running.start()
    recovery = log_of(running)[before:]
    assert "cutting" not in recovery
    assert "damaged" not in recovery
    with RawConnection(running.address) as connection:
        assert connection.ask("metadata", 12, {"topics": None})["topics"]
    assert running.stop() == 0
    assert_no_defect(running)


@pytest.fixture
def attacked(broker: HeadgateBroker) -> Iterator[HeadgateBroker]:
    """Run a witness next to the attack, then check the broker."""
    with Witness(broker):
        yield broker
    assert broker.process is not None
    assert broker.process.running, log_of(broker)[-4000:]
    assert resident_bytes(broker) < RESIDENT_BYTES_MAX
    assert_no_defect(broker)


def assert_no_defect(broker: HeadgateBroker) -> None:
    log = log_of(broker)
    assert "Traceback" not in log, log[max(log.find("Traceback") - 500, 0) :][:4000]
    assert "see the traceback" not in log
