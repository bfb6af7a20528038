"""`python -m headgate.broker`: runs only the broker."""

import argparse
import gc
import logging
import os
import sys
from pathlib import Path

from headgate.broker.runtime.errors import BrokerError
from headgate.broker.server.run import run
from headgate.broker.state.configs.values import InvalidConfig
from headgate.broker.state.settings import BrokerSettings


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m headgate.broker", description="Kafka-protocol broker, durable, one process"
    )
    parser.add_argument("--data-dir", type=Path, default=Path(".headgate/broker"))
    parser.add_argument("--listen", default="127.0.0.1:9092", metavar="HOST:PORT")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a Kafka broker config")
    parser.add_argument("--stop-at-eof", action="store_true", help="stop when standard input ends, as on SIGTERM")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    os.umask(0o077)  # Only this user may read the records.
    host, _, port = arguments.listen.rpartition(":")
    static = dict(pair.partition("=")[::2] for pair in arguments.set)
    try:
        settings = BrokerSettings(static)
        # The objects that exist now live as long as the process, so garbage collection can skip them.
        gc.freeze()
        run(
            arguments.data_dir,
            settings,
            host.strip("[]"),
            int(port),
            lambda host, port: print(f"broker listening on {host}:{port}", file=sys.stderr, flush=True),
            stop_at_eof=arguments.stop_at_eof,
        )
    except (BrokerError, InvalidConfig, OSError) as error:
        print(f"broker: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
