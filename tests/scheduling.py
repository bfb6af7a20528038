"""Which tests one worker runs together, and which go first.

The tests of a file share servers, those of `tests/spark` a Spark session: kept together, each is started once and not
once per worker. pytest-xdist has groups for this, but hides them in the names of tests, which pytest 9 does not let it.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

ONE_SESSION = "tests/spark/"
LONGEST = (ONE_SESSION, "tests/faults/test_kill.py", "tests/clients/")
"""What takes longest in one piece goes first, so that no worker is left alone with it at the end."""


def turn_of(nodeid: str) -> int:
    return next((turn for turn, start in enumerate(LONGEST) if nodeid.startswith(start)), len(LONGEST))


def group_of(nodeid: str) -> str:
    return ONE_SESSION if nodeid.startswith(ONE_SESSION) else nodeid.partition("::")[0]


class GroupScheduling(LoadScopeScheduling):
    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        # In the order of collection, which is the one above, and not by the number of tests in a group.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
