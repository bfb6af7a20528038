"""The comparison of two schemas as a set of pairs, each of which is readable or not.

A pair is judged by looking at its own keywords and asking for the pairs below it. Nothing recurses: a pair asked for is
taken as readable and put on a list; when it turns out unreadable, the pairs that asked for it are judged again. A pair
turns at most once, so the work ends, whatever refers to whatever, at the greatest set of readable pairs: recursion
alone makes nothing unreadable, and no real difference is hidden by it. What lies below a pair that is unreadable by
itself is looked at only when it is to be reported. How one pair is judged is `judgement`'s.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from headgate.registry.compatibility.incompatibility import Incompatibility, Policy
from headgate.registry.compatibility.json_schema.explanations import explain
from headgate.registry.compatibility.json_schema.kinds import TOLERATED, Difference
from headgate.registry.compatibility.json_schema.partners import Hints
from headgate.registry.compatibility.json_schema.shapes import Shape, Shapes
from headgate.registry.errors import WorkLimitExceeded
from headgate.registry.formats.json_schema.document import shortened
from headgate.registry.formats.json_schema.patterns import TooCostly, found
from headgate.registry.formats.json_schema.subschema import Subschema

# Looks at a keyword, a property, a pair. A schema of a thousand properties needs a few thousand; a hundred alternatives
# of a hundred properties, all against all, a million. This many take a few seconds.
STEPS_MAX: Final = 400_000

# Looking up the verdict on a pair costs this much less than judging it.
_GLANCES_PER_STEP: Final = 20

# Enough to see what is wrong. Shared definitions would otherwise be reported once for each way that leads to them.
INCOMPATIBILITIES_MAX: Final = 500

# Ways through the graph of pairs that the report looks at, where most end in what is already being reported.
REPORT_STEPS_MAX: Final = 20_000
REPORT_LEVELS_MAX: Final = 100

# A chain of thousands of references makes a path that nobody reads.
PATH_CHARACTERS_MAX: Final = 2_000

Pair = tuple[Shape, Shape]

_WHOLE: Final = object()


@dataclass(frozen=True, slots=True)
class Found:
    kind: Difference
    path: str
    original: Any
    """The value of the keyword that differs, or of the whole schema; None where there is none."""
    update: Any


@dataclass(frozen=True, slots=True)
class Below:
    """All that is wrong with another pair, at a path below this one."""

    path: str
    pair: Pair


class Exhausted(Exception):
    """The comparison took more steps than it is given."""


class Asking:
    """One judgement under way: what it finds, and the pairs it asks for."""

    __slots__ = ("_comparison", "_pair", "_unknown", "asked", "effort", "found", "unfinished")

    def __init__(self, comparison: "Comparison", pair: Pair) -> None:
        self._comparison = comparison
        self._pair = pair
        self.found: list[Found | Below] = []
        self.asked: list[Pair] = []
        self._unknown = 0
        self.effort = 1
        """Steps of the budget that this judgement takes, besides the pairs it asks for."""
        self.unfinished = False

    @property
    def shapes(self) -> Shapes:
        return self._comparison.shapes

    @property
    def hints(self) -> Hints:
        return self._comparison.hints

    @property
    def steps(self) -> int:
        """What this judgement takes of the budget. Pairs that are known already cost little."""
        return self.effort + self._unknown + len(self.asked) // _GLANCES_PER_STEP

    def difference(self, kind: Difference, path: str = "", original: Any = _WHOLE, update: Any = _WHOLE) -> None:
        self.effort += 1
        if kind not in self._comparison.tolerated:
            before, after = self._pair
            self.found.append(
                Found(
                    kind,
                    path,
                    before.source.value if original is _WHOLE else original,
                    after.source.value if update is _WHOLE else update,
                )
            )

    def judge_again(self) -> None:
        """Judge this pair again when the pairs that it asked for are known, whatever they turn out to be."""
        self.unfinished = True

    def readable(self, original: Subschema | Shape, update: Subschema | Shape) -> bool:
        """Whether everything `original` allows is taken by `update`, as far as is known now."""
        pair = self.shapes.of(original), self.shapes.of(update)
        verdict = self._comparison.verdicts.get(pair)
        self._unknown += verdict is None
        if self.steps >= self._comparison.steps_max:  # a single judgement, of two large combinations, can be too much
            raise Exhausted
        self.asked.append(pair)
        return not verdict

    def readable_of(self, pairs: Iterable[Pair]) -> tuple[list[int], bool]:
        """The places of the readable pairs, as far as is known now, and whether all of them are known.

        For many pairs: unreadable ones are not asked for again, because they stay unreadable.
        """
        verdicts, asked = self._comparison.verdicts, self.asked
        places: list[int] = []
        unknown = count = 0
        for count, pair in enumerate(pairs, 1):
            verdict = verdicts.get(pair)
            if not verdict:
                unknown += verdict is None
                asked.append(pair)
                places.append(count - 1)
        self._unknown += unknown
        self.effort += count // _GLANCES_PER_STEP
        if self.steps >= self._comparison.steps_max:
            raise Exhausted
        return places, not unknown

    def compare(self, path: str, original: Subschema | Shape, update: Subschema | Shape) -> bool:
        """The same, and what is found is part of this pair's findings."""
        if self.readable(original, update):
            return True
        self.found.append(Below(path, self.asked[-1]))
        return False

    def matches(self, pattern: str, name: str) -> bool:
        self.effort += 1
        if self.effort >= self._comparison.steps_max:
            raise Exhausted
        return self._comparison.matches(pattern, name)


Judge = Callable[[Asking, Shape, Shape], None]


class Comparison:
    def __init__(self, policy: Policy, judge: Judge, steps_max: int | None = None) -> None:
        self.steps_max = STEPS_MAX if steps_max is None else steps_max
        self.shapes = Shapes()
        self.hints = Hints(self.shapes)
        self.tolerated = TOLERATED[policy]
        self.verdicts: dict[Pair, list[Found | Below]] = {}
        """What is wrong with each pair judged so far; an empty list for a readable one."""
        self._judge = judge
        self._matches: dict[tuple[str, str], bool] = {}
        self._complete: dict[Pair, list[Found | Below]] = {}
        self._steps = 0

    def matches(self, pattern: str, name: str) -> bool:
        key = pattern, name
        if key not in self._matches:
            self._matches[key] = found(pattern, name)
        return self._matches[key]

    def run(self, original: Subschema, update: Subschema) -> list[Incompatibility]:
        root = self.shapes.of(original), self.shapes.of(update)
        try:
            self._settle([root])
            if not self.verdicts[root]:
                return []
            return self._all_ways(root) or self._nearest(root)
        except (Exhausted, TooCostly):
            if self.steps_max < STEPS_MAX:
                raise WorkLimitExceeded("The schemas take long to compare") from None
            return [_incompatibility(Found(Difference.COMPARISON_TOO_COSTLY, "", original.value, update.value), "")]

    def _settle(self, waiting: list[Pair]) -> None:
        asked_by: dict[Pair, dict[Pair, None]] = {}
        scheduled = set(waiting)
        # Judged again only when nothing new is left: a combination of many members then turns once, not once for each.
        again: dict[Pair, None] = {}
        while waiting or again:
            if not waiting:
                waiting = list(again)
                again = {}
            pair = waiting.pop()
            if self.verdicts.get(pair):
                continue  # unreadable already, and nothing can make it readable
            asking = self._judged(pair)
            self.verdicts[pair] = asking.found
            if asking.found:
                again.update(asked_by.get(pair, {}))
                continue
            if asking.unfinished:
                again[pair] = None
            for other in asking.asked:
                if other not in self.verdicts and other not in scheduled:
                    scheduled.add(other)
                    waiting.append(other)
                asked_by.setdefault(other, {})[pair] = None

    def _judged(self, pair: Pair) -> Asking:
        asking = Asking(self, pair)
        self._judge(asking, *pair)
        self._steps += asking.steps
        if self._steps > self.steps_max:
            raise Exhausted
        return asking

    def _everything_wrong(self, pair: Pair) -> list[Found | Below]:
        """All findings of an unreadable pair: the first judgement took pairs it asked for as readable."""
        if pair not in self._complete:
            asking = self._judged(pair)
            # A combination asks for further pairs once it knows that the likely ones are unreadable.
            while unknown := [other for other in dict.fromkeys(asking.asked) if other not in self.verdicts]:
                self._settle(unknown)
                asking = self._judged(pair)
            self._complete[pair] = asking.found
        return self._complete[pair]

    def _all_ways(self, root: Pair) -> list[Incompatibility]:
        """Each difference by every way that leads to it, except round in circles; empty if the ways are too long."""
        incompatibilities: dict[tuple[Difference, str], Incompatibility] = {}
        above = {root}
        stack = [("", root, iter(self._everything_wrong(root)))]
        steps = 0
        while stack and len(incompatibilities) < INCOMPATIBILITIES_MAX and steps < REPORT_STEPS_MAX:
            steps += 1
            prefix, pair, findings = stack[-1]
            finding = next(findings, None)
            if finding is None:
                stack.pop()
                above.discard(pair)
            elif isinstance(finding, Found):
                path = prefix + finding.path
                incompatibilities.setdefault((finding.kind, path), _incompatibility(finding, path))
            elif finding.pair not in above and len(stack) < REPORT_LEVELS_MAX:
                try:
                    below = self._everything_wrong(finding.pair)
                except (Exhausted, TooCostly):
                    if self.steps_max < STEPS_MAX:
                        raise
                    break  # what was found so far has to do
                above.add(finding.pair)
                stack.append((prefix + finding.path, finding.pair, iter(below)))
        return list(incompatibilities.values())

    def _nearest(self, root: Pair) -> list[Incompatibility]:
        """One difference, by the shortest way, however long that is."""
        came_from: dict[Pair, tuple[Pair, str] | None] = {root: None}
        queue = [root]
        for pair in queue:
            for finding in self._everything_wrong(pair):
                if isinstance(finding, Found):
                    return [_incompatibility(finding, _way(came_from, pair) + finding.path)]
                if finding.pair not in came_from:
                    came_from[finding.pair] = pair, finding.path
                    queue.append(finding.pair)
        raise Exhausted


def _way(came_from: "dict[Pair, tuple[Pair, str] | None]", pair: Pair) -> str:
    steps = []
    while (step := came_from[pair]) is not None:
        pair, path = step
        steps.append(path)
    return "".join(reversed(steps))


def _incompatibility(finding: Found, path: str) -> Incompatibility:
    if len(path) > PATH_CHARACTERS_MAX:
        half = PATH_CHARACTERS_MAX // 2
        path = f"{path[:half]}…{path[-half:]}"
    place = f"#{path}" if path else "#/"
    message, advice = explain(finding.kind, place)
    return Incompatibility(
        kind=finding.kind.value,
        path=place,
        message=message,
        reader="" if finding.update is None else shortened(finding.update),
        writer="" if finding.original is None else shortened(finding.original),
        advice=advice,
    )
