import asyncio

from headgate.proxy.peers import open_peers


def test_a_forwarded_request_has_no_headers_that_the_client_did_not_send() -> None:
    async def names() -> set[str]:
        async with open_peers() as peers:
            return set(peers.build_request("GET", "http://127.0.0.1:1/", headers=[("accept", "a/b")]).headers)

    assert asyncio.run(names()) == {"host", "accept"}
