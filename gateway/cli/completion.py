"""Tab completion of topic, group and subject names from the servers. It fails silently after a short timeout."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from headgate.kafka_client.request_client import RequestClient

# The shell blocks during completion.
completion_seconds_max = 1.5


def complete_topic(context: typer.Context, incomplete: str) -> list[str]:
    from headgate.kafka_client.admin.topics import list_topics

    async def names(cluster: "RequestClient") -> list[str]:
        return [topic.name for topic in await list_topics(cluster)]

    return _starting_with(incomplete, context, names)


def complete_group(context: typer.Context, incomplete: str) -> list[str]:
    from headgate.kafka_client.admin.groups import list_any_groups

    async def names(cluster: "RequestClient") -> list[str]:
        return [group.id for group in await list_any_groups(cluster)]

    return _starting_with(incomplete, context, names)


def complete_subject(context: typer.Context, incomplete: str) -> list[str]:
    import httpx

    from headgate.gateway.settings.registry_address import InvalidRegistryAddress, parse_address

    try:
        address = parse_address(str(context.params["registry"]))
        names = httpx.get(
            f"{address.url.rstrip('/')}/subjects",
            params={"subjectPrefix": incomplete},
            auth=address.credentials,
            timeout=completion_seconds_max,
        ).json()
    except (httpx.HTTPError, httpx.InvalidURL, InvalidRegistryAddress, ValueError, KeyError):
        return []
    return [str(name) for name in names if str(name).startswith(incomplete)]


def _starting_with(
    incomplete: str, context: typer.Context, ask: "Callable[[RequestClient], Awaitable[list[str]]]"
) -> list[str]:
    import asyncio

    from headgate.gateway.cli.cluster import with_cluster
    from headgate.kafka_client.errors import KafkaClientError

    async def in_time(cluster: "RequestClient") -> list[str]:
        async with asyncio.timeout(completion_seconds_max):
            return await ask(cluster)

    try:
        params = context.params
        names = with_cluster(str(params["bootstrap_server"]), params.get("kafka_config"), in_time)
    except (KafkaClientError, TimeoutError, KeyError):
        return []
    return [name for name in names if name.startswith(incomplete)]
