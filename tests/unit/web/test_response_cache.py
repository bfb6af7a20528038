"""Response cache: tags, invalidation, eviction, and responses that a change overtakes."""

import pytest

from headgate.web.response_cache import CachedResponse, CacheKey, ResponseCache


def key(path: str) -> CacheKey:
    return (b"GET", path.encode(), b"", b"")


def filled(*entries: tuple[str, tuple[str | int, ...]]) -> tuple[ResponseCache, list[CachedResponse]]:
    cache = ResponseCache(1_000_000)
    responses = [CachedResponse(path.encode()) for path, _ in entries]
    for (path, tags), response in zip(entries, responses, strict=True):
        cache.put(key(path), response, tags, cache.generation)
    return cache, responses


def test_a_change_invalidates_responses_with_its_tags_only() -> None:
    cache, (orders, both, users) = filled(("/1", ("orders",)), ("/2", ("orders", 7)), ("/3", ("users", 8)))
    cache.invalidate(frozenset({"orders"}))
    assert [cache.get(key(path)) for path in ("/1", "/2", "/3")] == [None, None, users]
    assert [response.is_valid for response in (orders, both, users)] == [False, False, True]
    cache.invalidate(frozenset({8}))
    assert len(cache) == 0


def test_a_change_can_invalidate_all_responses() -> None:
    cache, responses = filled(("/1", ("orders",)), ("/2", ()))
    cache.invalidate(frozenset(), affects_all=True)
    assert len(cache) == 0
    assert not any(response.is_valid for response in responses)


def test_no_change_keeps_the_generation() -> None:
    cache, _ = filled(("/1", ("orders",)))
    assert cache.invalidate(frozenset()) == 0
    assert len(cache) == 1


@pytest.mark.parametrize(
    ("changed", "affects_all", "is_cached"),
    [({"orders"}, False, False), ({"users"}, False, True), (set(), True, False)],
)
def test_a_response_computed_before_a_change_is_cached_only_if_the_change_does_not_affect_it(
    changed: set[str | int], affects_all: bool, is_cached: bool
) -> None:
    cache = ResponseCache(1_000_000)
    before = cache.generation
    cache.invalidate(changed, affects_all=affects_all)
    cache.put(key("/1"), CachedResponse(b"old"), ("orders",), before)
    assert (cache.get(key("/1")) is not None) is is_cached


def test_a_response_older_than_the_remembered_changes_is_not_cached() -> None:
    cache = ResponseCache(1_000_000)
    for number in range(1000):
        cache.invalidate(frozenset({number}))
    cache.put(key("/1"), CachedResponse(b"old"), ("orders",), 0)
    assert len(cache) == 0


def test_the_oldest_responses_are_evicted_at_the_limit_and_large_ones_are_not_cached() -> None:
    cache = ResponseCache(10_000)
    responses = [CachedResponse(b"x" * 2000) for _ in range(10)]
    for number, response in enumerate(responses):
        cache.put(key(f"/{number}"), response, ("tag",), 0)
    assert 0 < len(cache) < 10
    assert [response.is_valid for response in responses] == sorted(response.is_valid for response in responses)
    cache.put(key("/large"), CachedResponse(b"x" * 1024 * 1024), (), 0)
    assert cache.get(key("/large")) is None
