"""The matching algorithm agrees with an exhaustive search."""

from itertools import permutations
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from headgate.registry.compatibility.json_schema.matching import matched, may_be_matched
from tests.unit.registry.json_schema.schemas import examples


def best(edges: list[list[int]], right_count: int) -> int:
    """All matchings of the left nodes. None means no match."""
    places = [*range(right_count), *([None] * len(edges))]
    return max(
        (sum(right in edges[left] for left, right in enumerate(way)) for way in permutations(places, len(edges))),
        default=0,
    )


@examples(300)
@given(
    st.integers(0, 4).flatmap(
        lambda right: st.tuples(
            st.just(right),
            st.lists(st.sets(st.integers(0, max(right - 1, 0))) if right else st.just(set()), max_size=4),
        )
    )
)
def test_no_other_matching_is_larger(graph: tuple[int, list[set[int]]]) -> None:
    right_count, partners = graph
    edges = [sorted(choice) for choice in partners]
    assert matched(edges, right_count) == best(edges, right_count)


@examples(300)
@given(
    st.integers(1, 4).flatmap(
        lambda right: st.tuples(
            st.just(right), st.lists(st.sets(st.integers(0, right - 1)), max_size=4), st.randoms(use_true_random=False)
        )
    )
)
def test_the_search_starts_from_any_matching(graph: tuple[int, list[set[int]], Random]) -> None:
    right_count, partners, chance = graph
    edges = [sorted(choice) for choice in partners]
    start = [-1] * len(edges)
    for left, choice in enumerate(edges):
        free = [right for right in choice if right not in start]
        if free and chance.random() < 0.7:
            start[left] = chance.choice(free)
    assert matched(edges, right_count, start) == best(edges, right_count)
    for left, right in enumerate(start):
        if right == -1:
            without = [edges[other] for other in range(len(edges)) if start[other] != -1 or other == left]
            covered = sum(one != -1 for one in start) + 1
            assert may_be_matched(left, edges, right_count, start) == (best(without, right_count) == covered)


def test_a_matching_is_not_greedy() -> None:
    assert matched([[0, 1], [0]], 2) == 2
    assert matched([[0], [0, 1], [1, 2]], 3) == 3


def test_a_long_augmenting_path_is_found() -> None:
    size = 3_000
    edges = [[index, index + 1] for index in range(size - 1)] + [[0]]
    assert matched(edges, size) == size


def test_empty_sets_have_an_empty_matching() -> None:
    assert matched([], 0) == 0
    assert matched([[], []], 2) == 0
