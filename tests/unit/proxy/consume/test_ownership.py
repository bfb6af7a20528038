import pytest

from headgate.proxy.consumers.ownership import Ownership
from headgate.proxy.settings import ProxySettings, UnknownSetting

URLS = ("http://a:8082", "http://b:8082", "http://c:8082")


def owner(urls: tuple[str, ...], name: str) -> str:
    return Ownership(None, urls).elsewhere("group", name) or ""


def test_all_workers_compute_the_same_owner() -> None:
    for number in range(50):
        name = f"consumer-{number}"
        assert owner(URLS, name) == owner(tuple(reversed(URLS)), name)
        assert [Ownership(url, URLS).elsewhere("group", name) is None for url in URLS].count(True) == 1


def test_removing_a_worker_moves_only_its_own_consumers() -> None:
    for number in range(50):
        name = f"consumer-{number}"
        if owner(URLS, name) != URLS[2]:
            assert owner(URLS[:2], name) == owner(URLS, name)


def test_a_single_worker_owns_all_consumers() -> None:
    assert Ownership.of(ProxySettings()).elsewhere("g", "n") is None


@pytest.mark.parametrize(
    ("own", "urls"),
    [
        ("http://a:1", "http://b:1"),
        (None, "http://b:1"),
        ("ftp://a", "ftp://a"),
        ("x", "x"),
        ("http://u:p@a", "http://u:p@a"),
        ("http://a?x=1", "http://a?x=1"),
    ],
)
def test_an_invalid_worker_list_is_rejected(own: str | None, urls: str) -> None:
    with pytest.raises(UnknownSetting):
        Ownership.of(ProxySettings(worker_url=own, worker_urls=urls))
