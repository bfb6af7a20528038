"""The cached cluster id of v3 paths."""

import asyncio

import pytest

from headgate.proxy import cluster_identity
from headgate.proxy.cluster_identity import ClusterIdentity
from headgate.proxy.settings import ProxySettings


def test_a_cluster_that_was_replaced_is_found_under_its_new_id(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        found = ClusterIdentity(ProxySettings())
        current = ["old"]

        async def ask() -> str:
            return current[0]

        monkeypatch.setattr(found, "_ask", ask)
        monkeypatch.setattr(cluster_identity, "recheck_seconds", 0.0)
        await found.check("old")
        current[0] = "new"
        await found.check("new")
        assert await found.cluster_id() == "new"

    asyncio.run(scenario())
