"""The graph of a pipeline: inputs of each step, streams and tables, watermarks."""

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.spark_udfs.pipeline.model import JoinTransform, Pipeline, Read, Transform, Watermark, WindowTransform
from headgate.spark_udfs.pipeline.sources.source import Source


@dataclass(frozen=True, slots=True)
class Graph:
    """Ignores unknown names; the checks report them."""

    pipeline: Pipeline

    def inputs(self, name: str) -> tuple[str, ...]:
        transform = self.pipeline.transforms.get(name)
        steps = self.pipeline.steps
        return () if transform is None else tuple(each for each in transform.inputs if each in steps)

    def above(self, name: str) -> list[str]:
        """The step and everything it reads, closest first, without duplicates."""
        found = [name]
        for each in found:
            found += [before for before in self.inputs(each) if before not in found]
        return found

    def sources(self, name: str) -> list[Source]:
        return [self.pipeline.sources[each] for each in self.above(name) if each in self.pipeline.sources]

    def is_stream(self, name: str) -> bool:
        return any(source.read is Read.STREAM for source in self.sources(name))

    def stream_inputs(self, name: str) -> tuple[str, ...]:
        return tuple(each for each in self.inputs(name) if self.is_stream(each))

    def table_inputs(self, name: str) -> tuple[str, ...]:
        return tuple(each for each in self.inputs(name) if not self.is_stream(each))

    def cycle(self, name: str) -> list[str]:
        """The path from a step back to itself; empty if there is none."""
        pending: list[tuple[str, list[str]]] = [(name, [name])]
        seen: set[str] = set()
        while pending:
            at, path = pending.pop()
            for before in self.inputs(at):
                if before == name:
                    return [*path, name]
                if before not in seen:
                    seen.add(before)
                    pending.append((before, [*path, before]))
        return []

    def watermarks(self, name: str) -> list[Watermark]:
        """The watermarks of the rows of a step."""
        steps = self.pipeline.steps
        found = []
        for each in self.above(name):
            step = steps[each]
            if isinstance(step, WindowTransform):
                if step.watermark is not None:
                    found.append(Watermark(step.time, step.watermark))
            elif not isinstance(step, JoinTransform) and step.watermark is not None:
                found.append(step.watermark)
        return found

    def is_known_stateful(self, name: str) -> bool:
        """Whether the file alone shows that a step is stateful. For SQL, `analysis` decides."""
        transform = self.pipeline.transforms.get(name)
        if transform is None or not self.is_stream(name):
            return False
        return isinstance(transform, WindowTransform) or len(self.stream_inputs(name)) > 1

    def ordered(self) -> Iterator[Transform]:
        """The transforms in topological order."""
        done = set(self.pipeline.sources)
        waiting = dict(self.pipeline.transforms)
        while waiting:
            ready = [name for name in waiting if set(self.inputs(name)) <= done]
            if not ready:
                return
            for name in ready:
                yield waiting.pop(name)
                done.add(name)
