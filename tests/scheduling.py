"""Groups of tests that run on the same worker, and the order of the groups.

The tests of a file share servers, and most tests in `tests/spark` share a Spark session. With groups, each of these
starts once instead of once per worker. The groups of pytest-xdist do not work here: they change the names of tests,
and pytest 9 does not allow this.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

SPARK_SESSION = "tests/spark/"
WITHOUT_SESSION = (
    "tests/spark/deployment/",
    "tests/spark/faults/test_driver_kill.py",
    "tests/spark/source/",
    "tests/spark/test_demo.py",
)
"""Tests in `tests/spark` that do not use the shared session. Another worker runs them in parallel."""
SESSION_OF_SOURCE = "tests/spark/source/test_spark.py"

LONGEST = (
    SPARK_SESSION,
    "tests/spark/faults/test_driver_kill.py",
    "tests/faults/test_kill.py",
    "tests/wire/test_answers.py",
    "tests/faults/test_history.py",
    "tests/clients/test_java_tools.py",
    "tests/spark/test_demo.py",
    "tests/clients/test_groups.py",
    "tests/packaging/",
    "tests/hostile/test_web_pages.py",
    "tests/hostile/columnar/test_mutations.py",
    "tests/clients/",
    "tests/spark/source/",
    "tests/hostile/",
    "tests/faults/",
)
"""Groups, longest first. A long group that starts last leaves the other worker idle."""


def group_of(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    if file == SESSION_OF_SOURCE:
        return SPARK_SESSION
    return SPARK_SESSION if file.startswith(SPARK_SESSION) and not file.startswith(WITHOUT_SESSION) else file


def turn_of(nodeid: str) -> int:
    group = group_of(nodeid)
    if group == SPARK_SESSION:
        return 0
    turns = (turn for turn, start in enumerate(LONGEST) if start != SPARK_SESSION and group.startswith(start))
    return next(turns, len(LONGEST))


class GroupScheduling(LoadScopeScheduling):
    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        # Keep the order of collection, which is the order of LONGEST. The default is the number of tests in a group.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
