"""Target offsets of a reset."""

import pytest

from headgate.kafka_client.admin.offsets import Place
from headgate.kafka_client.admin.reset import Aim, Target, plan
from headgate.kafka_client.errors import NothingCommitted

AT = Place("orders", 0)


@pytest.mark.parametrize(
    ("target", "at_time", "expected"),
    [
        (Target(Aim.EARLIEST), -1, 10),
        (Target(Aim.LATEST), -1, 20),
        (Target(Aim.OFFSET, 15), -1, 15),
        (Target(Aim.OFFSET, 3), -1, 10),
        (Target(Aim.OFFSET, 2**62), -1, 20),
        (Target(Aim.SHIFT, -2), -1, 10),
        (Target(Aim.SHIFT, 5), -1, 17),
        (Target(Aim.SHIFT, -(2**63)), -1, 10),
        (Target(Aim.TIMESTAMP, 1000), 13, 13),
        (Target(Aim.TIMESTAMP, 1000), -1, 20),
    ],
)
def test_the_target_offset_is_clamped_to_the_partition(target: Target, at_time: int, expected: int) -> None:
    (move,) = plan(target, [AT], {AT: 12}, {AT: (10, 20)}, {AT: at_time})
    assert (move.before, move.after, move.log_end_offset) == (12, expected, 20)


def test_shift_by_requires_a_committed_offset() -> None:
    with pytest.raises(NothingCommitted, match="partition 0 of topic orders"):
        plan(Target(Aim.SHIFT, 1), [AT], {}, {AT: (0, 1)}, {})
    (move,) = plan(Target(Aim.LATEST), [AT], {}, {AT: (0, 1)}, {})
    assert move.before is None
