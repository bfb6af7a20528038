"""Maximum bipartite matching with the Hopcroft-Karp algorithm, without recursion.

The search starts with a known matching and visits only the edges that it needs.
"""

from collections.abc import Sequence
from typing import Final, Protocol

_FREE: Final = -1


class Edges(Protocol):
    """`edges[left]` are the possible matches, as a sequence of sequences, or computed on demand."""

    def __len__(self) -> int: ...
    def __getitem__(self, left: int, /) -> Sequence[int]: ...


def may_be_matched(start: int, edges: Edges, right_count: int, right_of: Sequence[int]) -> bool:
    """Whether an augmenting path gives a free left node a match (Berge's theorem)."""
    left_of = _inverse(right_of, right_count)
    seen = {start}
    queue = [start]
    for left in queue:
        row = edges[left]
        if any(left_of[right] == _FREE for right in row):
            return True
        for right in row:
            if left_of[right] not in seen:
                seen.add(left_of[right])
                queue.append(left_of[right])
    return False


def _inverse(right_of: Sequence[int], right_count: int) -> list[int]:
    left_of = [_FREE] * right_count
    for left, right in enumerate(right_of):
        if right != _FREE:
            left_of[right] = left
    return left_of


def matched(edges: Edges, right_count: int, start: Sequence[int] | None = None) -> int:
    """The size of a maximum matching. `start` is the current match of each left node, -1 for none."""
    right_of = [_FREE] * len(edges) if start is None else list(start)
    left_of = _inverse(right_of, right_count)
    total = sum(right != _FREE for right in right_of)
    while True:
        distance = _layers(edges, left_of, right_of)
        gained = sum(
            _augment(start, edges, left_of, right_of, distance)
            for start in range(len(edges))
            if right_of[start] == _FREE and distance[start] == 0
        )
        if not gained:
            return total
        total += gained


def _layers(edges: Edges, left_of: list[int], right_of: list[int]) -> list[int]:
    """The distance of each left node from a free one along alternating paths. -1 if unreachable.

    Nodes beyond the nearest free right node are omitted, because no shortest path contains them.
    """
    distance = [0 if right == _FREE else -1 for right in right_of]
    queue = [left for left, right in enumerate(right_of) if right == _FREE]
    last = len(edges)
    for left in queue:
        if distance[left] > last:
            break
        for right in edges[left]:
            other = left_of[right]
            if other == _FREE:
                last = distance[left]
            elif distance[other] == -1:
                distance[other] = distance[left] + 1
                queue.append(other)
    return distance


def _augment(start: int, edges: Edges, left_of: list[int], right_of: list[int], distance: list[int]) -> bool:
    """Find an augmenting path from a free left node to a free right node, and apply it."""
    lefts, choices = [start], [iter(edges[start])]
    rights: list[int] = []
    while lefts:
        left = lefts[-1]
        for right in choices[-1]:
            other = left_of[right]
            if other == _FREE:
                for node, match in zip(lefts, [*rights, right], strict=True):
                    right_of[node], left_of[match] = match, node
                return True
            if distance[other] == distance[left] + 1:
                lefts.append(other)
                choices.append(iter(edges[other]))
                rights.append(right)
                break
        else:
            distance[left] = -1  # a dead end for all later starts of this round
            lefts.pop()
            choices.pop()
            if rights:
                rights.pop()
    return False
