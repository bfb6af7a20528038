"""A longer run of the history checker: `python -m tests.history --requests 20000 --connections 100 --broker kafka`."""

import argparse
import secrets
import tempfile
from functools import partial
from pathlib import Path

from tests.history.producers import WAYS
from tests.history.workload import Workload, kill_and_restart, run
from tests.live.apache_kafka import KafkaNode
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy

SHOWN_VIOLATIONS = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", choices=("headgate", "kafka"), default="headgate")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--kills", type=int, default=10, help="kills of the proxy and of the broker, in turn")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headgate-history-") as folder:
        broker = (KafkaNode if given.broker == "kafka" else HeadgateBroker)(Path(folder) / "broker")
        broker.start()
        proxy = HeadgateProxy(Path(folder) / "proxy", broker.address)
        proxy.start()
        disturbances = {
            (number + 1) / (given.kills + 1): partial(kill_and_restart, (proxy, broker)[number % 2])
            for number in range(given.kills)
        }
        topic = f"history-{secrets.token_hex(4)}"
        workload = Workload(topic, given.ways, given.connections, given.requests, given.partitions, disturbances)
        outcome = run(workload, proxy.url, broker.address)
        proxy.stop()
        broker.stop()
    sent, acknowledged = len(outcome.history.sent), outcome.acknowledged
    print(f"{sent} records sent, {acknowledged} acknowledged, {len(outcome.violations)} violations")
    for line in outcome.violations[:SHOWN_VIOLATIONS]:
        print(line)
    for name in outcome.unfinished_keys[:SHOWN_VIOLATIONS]:
        print(f"{name} never got an answer")
    return 1 if outcome.violations or outcome.unfinished_keys else 0


if __name__ == "__main__":
    raise SystemExit(main())
