"""`python -m headgate.proxy`: the REST proxy in its own process."""

import argparse
import gc
import os
import sys

from headgate.proxy.api.app import create_app
from headgate.proxy.log_rate_limit import limit_client_log
from headgate.proxy.settings import ProxySettings
from headgate.web.server import ServerOptions, run, serve, split_listen_address
from headgate.web.settings import InvalidSetting


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m headgate.proxy", description="REST proxy for any broker that speaks the Kafka protocol."
    )
    parser.add_argument("--listen", default="127.0.0.1:8082", metavar="HOST:PORT")
    parser.add_argument("--bootstrap-server", default="127.0.0.1:9092", metavar="HOST:PORT")
    parser.add_argument(
        "--registry-url",
        default=os.environ.get("HEADGATE_REGISTRY_URL") or "http://127.0.0.1:8081",
        metavar="URL",
        help="the schema registry; use the environment variable HEADGATE_REGISTRY_URL for a URL with a password, "
        "because other users can read the command line",
    )
    parser.add_argument(
        "--kafka-config",
        default=os.environ.get("HEADGATE_KAFKA_CONFIG", ""),
        metavar="FILE",
        help="a properties file of a Kafka client with TLS and SASL settings (HEADGATE_KAFKA_CONFIG); it keeps "
        "passwords off the command line",
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the proxy")
    parser.add_argument("--stop-at-eof", action="store_true", help="stop when standard input ends, as on SIGTERM")
    arguments = parser.parse_args()
    given = {"bootstrap.servers": arguments.bootstrap_server, "schema.registry.url": arguments.registry_url}
    if arguments.kafka_config:
        given["kafka.config"] = arguments.kafka_config
    given |= dict(pair.partition("=")[::2] for pair in arguments.set)
    try:
        settings = ProxySettings.of(given)
        host, port = split_listen_address(arguments.listen)
    except InvalidSetting as error:
        print(f"proxy: {error}", file=sys.stderr)
        return 2
    return run("proxy", _serve(settings, host, port, stop_at_eof=arguments.stop_at_eof))


async def _serve(settings: ProxySettings, host: str, port: int, *, stop_at_eof: bool) -> None:
    limit_client_log()
    application = create_app(settings, host)
    # Objects that exist now live as long as the process. Records are not part of reference cycles, so frequent garbage
    # collections would only scan them.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    options = ServerOptions(
        host,
        port,
        grace_seconds=max(settings.shutdown_graceful_ms // 1000, 1),
        websocket_message_bytes_max=settings.producer_batch_bytes_max * 2,
        stop_at_eof=stop_at_eof,
    )
    await serve(application, options)


if __name__ == "__main__":
    sys.exit(main())
