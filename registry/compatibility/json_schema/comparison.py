"""Compares two schemas as a set of pairs of subschemas, each of which is readable or not.

`pair_comparison` compares the keywords of a pair and requests the pairs below it. Nothing recurses: a requested pair
counts as readable and goes on a work list. If it is unreadable, the pairs that requested it are compared again. A pair
changes at most once, so the work ends with the largest set of readable pairs. Recursion alone makes no pair unreadable,
and it hides no difference. Pairs below an unreadable pair are compared only for the report.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from headgate.registry.compatibility.incompatibility import Incompatibility, Policy
from headgate.registry.compatibility.json_schema.explanations import explain
from headgate.registry.compatibility.json_schema.kinds import TOLERATED, Difference
from headgate.registry.compatibility.json_schema.likely_matches import Hints
from headgate.registry.compatibility.json_schema.shapes import Shape, Shapes
from headgate.registry.errors import WorkLimitExceeded
from headgate.registry.formats.json_schema.document import shortened
from headgate.registry.formats.json_schema.patterns import TooCostly, found
from headgate.registry.formats.json_schema.subschema import Subschema

# Steps of one comparison: keywords, properties and pairs. A schema of a thousand properties needs a few thousand. A
# hundred alternatives of a hundred properties each need a million. The limit takes a few seconds.
STEPS_MAX: Final = 400_000

# The lookup of a known pair is this much cheaper than its comparison.
_GLANCES_PER_STEP: Final = 20

# Reported differences. Shared definitions would otherwise be reported once per path.
INCOMPATIBILITIES_MAX: Final = 500

# Paths through the graph of pairs that the report follows. Most end in a pair that is already being reported.
REPORT_STEPS_MAX: Final = 20_000
REPORT_LEVELS_MAX: Final = 100

# Limits paths through chains of thousands of references.
PATH_CHARACTERS_MAX: Final = 2_000

Pair = tuple[Shape, Shape]

_WHOLE: Final = object()


@dataclass(frozen=True, slots=True)
class Found:
    kind: Difference
    path: str
    original: Any
    """The value of the different keyword, or of the whole schema. None if absent."""
    update: Any


@dataclass(frozen=True, slots=True)
class Below:
    """All differences of another pair, at a path below this one."""

    path: str
    pair: Pair


class Exhausted(Exception):
    """The comparison exceeded its step limit."""


class PairComparison:
    """The comparison of one pair: its findings, and the pairs that it requests."""

    __slots__ = ("_comparison", "_pair", "_unknown", "effort", "found", "requested", "unfinished")

    def __init__(self, comparison: "Comparison", pair: Pair) -> None:
        self._comparison = comparison
        self._pair = pair
        self.found: list[Found | Below] = []
        self.requested: list[Pair] = []
        self._unknown = 0
        self.effort = 1
        """Steps of this comparison, without the requested pairs."""
        self.unfinished = False

    @property
    def shapes(self) -> Shapes:
        return self._comparison.shapes

    @property
    def hints(self) -> Hints:
        return self._comparison.hints

    @property
    def steps(self) -> int:
        """All steps of this comparison. Known pairs cost little."""
        return self.effort + self._unknown + len(self.requested) // _GLANCES_PER_STEP

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

    def compare_again(self) -> None:
        """Compare this pair again when the requested pairs are known, for any result."""
        self.unfinished = True

    def readable(self, original: Subschema | Shape, update: Subschema | Shape) -> bool:
        """Whether `update` accepts everything that `original` allows, as far as known."""
        pair = self.shapes.of(original), self.shapes.of(update)
        result = self._comparison.results.get(pair)
        self._unknown += result is None
        if self.steps >= self._comparison.steps_max:  # one comparison of two large combinations can exceed the limit
            raise Exhausted
        self.requested.append(pair)
        return not result

    def readable_of(self, pairs: Iterable[Pair]) -> tuple[list[int], bool]:
        """The positions of readable pairs, as far as known, and whether all of them are known.

        For many pairs at once. Unreadable pairs stay unreadable and are not requested again.
        """
        results, requested = self._comparison.results, self.requested
        places: list[int] = []
        unknown = count = 0
        for count, pair in enumerate(pairs, 1):
            result = results.get(pair)
            if not result:
                unknown += result is None
                requested.append(pair)
                places.append(count - 1)
        self._unknown += unknown
        self.effort += count // _GLANCES_PER_STEP
        if self.steps >= self._comparison.steps_max:
            raise Exhausted
        return places, not unknown

    def compare(self, path: str, original: Subschema | Shape, update: Subschema | Shape) -> bool:
        """Like `readable`, and the differences become findings of this pair."""
        if self.readable(original, update):
            return True
        self.found.append(Below(path, self.requested[-1]))
        return False

    def matches(self, pattern: str, name: str) -> bool:
        self.effort += 1
        if self.effort >= self._comparison.steps_max:
            raise Exhausted
        return self._comparison.matches(pattern, name)


ComparePair = Callable[[PairComparison, Shape, Shape], None]


class Comparison:
    def __init__(self, policy: Policy, compare_pair: ComparePair, steps_max: int | None = None) -> None:
        self.steps_max = STEPS_MAX if steps_max is None else steps_max
        self.shapes = Shapes()
        self.hints = Hints(self.shapes)
        self.tolerated = TOLERATED[policy]
        self.results: dict[Pair, list[Found | Below]] = {}
        """The findings of each compared pair. An empty list means readable."""
        self._compare_pair = compare_pair
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
            if not self.results[root]:
                return []
            return self._all_ways(root) or self._nearest(root)
        except (Exhausted, TooCostly):
            if self.steps_max < STEPS_MAX:
                raise WorkLimitExceeded("The comparison exceeds the step limit") from None
            return [_incompatibility(Found(Difference.COMPARISON_TOO_COSTLY, "", original.value, update.value), "")]

    def _settle(self, waiting: list[Pair]) -> None:
        requested_by: dict[Pair, dict[Pair, None]] = {}
        scheduled = set(waiting)
        # Repeat comparisons only when nothing new is left. A large combination is then repeated once, not once per
        # member.
        again: dict[Pair, None] = {}
        while waiting or again:
            if not waiting:
                waiting = list(again)
                again = {}
            pair = waiting.pop()
            if self.results.get(pair):
                continue  # already unreadable, and that is final
            compared = self._compared(pair)
            self.results[pair] = compared.found
            if compared.found:
                again.update(requested_by.get(pair, {}))
                continue
            if compared.unfinished:
                again[pair] = None
            for other in compared.requested:
                if other not in self.results and other not in scheduled:
                    scheduled.add(other)
                    waiting.append(other)
                requested_by.setdefault(other, {})[pair] = None

    def _compared(self, pair: Pair) -> PairComparison:
        compared = PairComparison(self, pair)
        self._compare_pair(compared, *pair)
        self._steps += compared.steps
        if self._steps > self.steps_max:
            raise Exhausted
        return compared

    def _all_findings(self, pair: Pair) -> list[Found | Below]:
        """All findings of an unreadable pair. The first comparison assumed that requested pairs are readable."""
        if pair not in self._complete:
            compared = self._compared(pair)
            # A combination requests more pairs when the likely ones are unreadable.
            while unknown := [other for other in dict.fromkeys(compared.requested) if other not in self.results]:
                self._settle(unknown)
                compared = self._compared(pair)
            self._complete[pair] = compared.found
        return self._complete[pair]

    def _all_ways(self, root: Pair) -> list[Incompatibility]:
        """Each difference with all its paths, except circular ones. Empty if the paths are too long."""
        incompatibilities: dict[tuple[Difference, str], Incompatibility] = {}
        above = {root}
        stack = [("", root, iter(self._all_findings(root)))]
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
                    below = self._all_findings(finding.pair)
                except (Exhausted, TooCostly):
                    if self.steps_max < STEPS_MAX:
                        raise
                    break  # report the findings so far
                above.add(finding.pair)
                stack.append((prefix + finding.path, finding.pair, iter(below)))
        return list(incompatibilities.values())

    def _nearest(self, root: Pair) -> list[Incompatibility]:
        """One difference with its shortest path, of any length."""
        came_from: dict[Pair, tuple[Pair, str] | None] = {root: None}
        queue = [root]
        for pair in queue:
            for finding in self._all_findings(pair):
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
