"""The largest one-to-one assignment between two sets: Hopcroft and Karp's algorithm, without recursion."""

from collections.abc import Sequence

_FREE = -1


def matched(edges: Sequence[Sequence[int]], right_count: int) -> int:
    """How many of the left can have a partner of their own. `edges[left]` are the partners that would do."""
    left_of = [_FREE] * right_count
    right_of = [_FREE] * len(edges)
    total = 0
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


def _layers(edges: Sequence[Sequence[int]], left_of: list[int], right_of: list[int]) -> list[int]:
    """The distance of each left node from a free one, along alternating paths; -1 when out of reach."""
    distance = [0 if right == _FREE else -1 for right in right_of]
    queue = [left for left, right in enumerate(right_of) if right == _FREE]
    for left in queue:
        for right in edges[left]:
            other = left_of[right]
            if other != _FREE and distance[other] == -1:
                distance[other] = distance[left] + 1
                queue.append(other)
    return distance


def _augment(
    start: int, edges: Sequence[Sequence[int]], left_of: list[int], right_of: list[int], distance: list[int]
) -> bool:
    """Look for a way from a free left node to a free right one, and exchange partners along it."""
    lefts, choices = [start], [iter(edges[start])]
    rights: list[int] = []
    while lefts:
        left = lefts[-1]
        for right in choices[-1]:
            other = left_of[right]
            if other == _FREE:
                for node, partner in zip(lefts, [*rights, right], strict=True):
                    right_of[node], left_of[partner] = partner, node
                return True
            if distance[other] == distance[left] + 1:
                lefts.append(other)
                choices.append(iter(edges[other]))
                rights.append(right)
                break
        else:
            distance[left] = -1  # a dead end for every later start of this round
            lefts.pop()
            choices.pop()
            if rights:
                rights.pop()
    return False
