"""Whatever ends a run, as a `PipelineError`: what happened, in the words of whoever knows best.

Spark wraps an error of a Python worker or of the data source into texts with traces of two languages; the sentence that
helps is somewhere in the middle.
"""

import re

from spark_udfs.pipeline.mistakes import PipelineError

_OURS = re.compile(
    r"(?:spark_udfs|serdes)(?:\.\w+)*\.(?P<kind>[A-Z]\w+): (?P<text>.+?)(?=\n\s*at |\n\n|\nTraceback|\n\s*JVM|\Z)",
    re.DOTALL,
)
_ANY = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*(?:Error|Exception)): (?P<text>.+)$", re.MULTILINE)
"""The last line of a trace of Python's."""
_UNREACHABLE = frozenset({"BrokerUnreachable", "RegistryNotReady", "RegistryUnavailable"})
TEXT_CHARS_MAX = 2000


def explained(error: BaseException) -> PipelineError:
    if isinstance(error, PipelineError):
        return error
    text = str(error)
    ours = _OURS.search(text)
    if ours is not None:
        said = " ".join(ours["text"].split())[:TEXT_CHARS_MAX]
        return PipelineError(said, unreachable=ours["kind"] in _UNREACHABLE)
    if type(error).__module__.startswith(("spark_udfs", "serdes")):
        return PipelineError(text, unreachable=type(error).__name__ in _UNREACHABLE)
    if "Traceback (most recent call last)" in text:
        last = [found for found in _ANY.finditer(text) if not found["kind"].startswith(("org.", "java."))]
        if last:
            return PipelineError(f"{last[-1]['kind']}: {last[-1]['text']}"[:TEXT_CHARS_MAX])
    first = [line for line in text.splitlines() if line.strip()][:3]
    return PipelineError("Spark could not go on", why=" ".join(first)[:TEXT_CHARS_MAX] or type(error).__name__)
