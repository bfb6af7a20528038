"""Groups of tests that run on the same worker, and the order of the groups.

The tests of a group share servers, Spark sessions or environments. Each of these starts once instead of once per
worker. The groups of pytest-xdist do not work here: they change the names of tests, and pytest 9 does not allow this.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

FILE = ""
"""The group is the file."""
SPARK_FUNCTIONS = "session of Spark for functions"
SPARK_SESSION = "session of Spark"
"""One session for all tests would be the longest group by far."""

GROUPS = (
    ("tests/spark/source/test_spark.py", SPARK_SESSION),
    ("tests/spark/source/test_secured.py", "secured Apache Kafka"),
    ("tests/spark/source/", "Apache Kafka"),
    ("tests/spark/faults/test_driver_kill.py", FILE),
    ("tests/spark/deployment/", FILE),
    ("tests/spark/test_demo.py", FILE),
    ("tests/spark/functions/", SPARK_FUNCTIONS),
    ("tests/spark/", SPARK_SESSION),
    ("tests/clients/secured/", "secured Apache Kafka"),
    ("tests/clients/cli/test_apache_kafka.py", "Apache Kafka"),
    ("tests/clients/proxy/", "proxies"),
    ("tests/wire/", "Apache Kafka"),
    ("tests/cluster/", "cluster of Apache Kafka"),
    ("tests/packaging/", "installed packages"),
)
"""The group of a test is that of the first prefix of its path."""

LONGEST = (
    SPARK_FUNCTIONS,
    SPARK_SESSION,
    "proxies",
    "Apache Kafka",
    "tests/spark/faults/test_driver_kill.py",
    "cluster of Apache Kafka",
    "tests/spark/deployment/",
    "tests/clients/test_java_tools.py",
    "tests/faults/test_history.py",
    "tests/spark/test_demo.py",
    "installed packages",
    "secured Apache Kafka",
    "tests/faults/test_kill.py",
    "tests/hostile/test_web_pages.py",
    "tests/clients/cli/",
    "tests/clients/",
    "tests/hostile/",
    "tests/faults/",
)
"""Starts of the names of groups, longest group first. A long group that starts last leaves the other workers idle."""


def group_of(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    return next((group for start, group in GROUPS if file.startswith(start)), FILE) or file


def turn_of(nodeid: str) -> int:
    group = group_of(nodeid)
    return next((turn for turn, start in enumerate(LONGEST) if group.startswith(start)), len(LONGEST))


class GroupScheduling(LoadScopeScheduling):
    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        # Keep the order of collection, which is the order of LONGEST. The default is the number of tests in a group.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
