"""A broker under attack, and what must hold after every attack: it runs, it remembers, it complained in order."""

from collections.abc import Iterator

import pytest

from tests.hostile.broker.witness import Witness, log_of, resident_bytes
from tests.live.headgate import HeadgateBroker
from tests.wire.raw_client import RawConnection

# An idle broker takes some 60 MB, 100 MB with many connections. The largest request (100 MiB) is held once as it
# arrives and once as the batch in it; a bomb is inflated up to 128 MiB.
RESIDENT_BYTES_MAX = 700 * 1024 * 1024


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateBroker]:
    """One per file: what one attack left behind is there for the next."""
    running = HeadgateBroker(tmp_path_factory.mktemp("hostile"), {"num.partitions": "1"})
    running.start()
    yield running
    assert running.stop() == 0, log_of(running)[-4000:]
    # Whatever was stored, the next start is clean and quick, and nothing has to be cut off or repaired.
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
    """The broker with a witness beside, and everything checked afterwards."""
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
