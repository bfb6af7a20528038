"""Whatever ends a run, as a `PipelineError`: what happened, in the words of whoever knows best.

Spark wraps an error of a Python worker or of the data source into texts with traces of two languages; the sentence that
helps is somewhere in the middle.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from headgate.spark_udfs.driver.restarts import is_new_version
from headgate.spark_udfs.pipeline.errors import PipelineError

_OURS = re.compile(
    r"(?:spark_udfs|serdes)(?:\.\w+)*\.(?P<kind>[A-Z]\w+): (?P<text>.+?)"
    r"(?=\n\s*at |\n\n|\nTraceback|\n\s*JVM|\n=== Streaming Query|\s+SQLSTATE: |\Z)",
    re.DOTALL,
)
_ANY = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*(?:Error|Exception)): (?P<text>.+)$", re.MULTILINE)
"""The last line of a trace of Python's."""
_UNREACHABLE = frozenset({"BrokerUnreachable", "RegistryNotReady", "RegistryUnavailable"})
_CALL = re.compile(r"^An error occurred while calling \S+\.\n: ")
"""How PySpark begins what Java says."""
_TRACE = re.compile(r"^\s+at [\w.$/]+\(|^JVM stacktrace:|^=== Streaming Query ===", re.MULTILINE)
TEXT_CHARS_MAX = 2000


def explained(error: BaseException) -> PipelineError:
    if isinstance(error, PipelineError):
        return error
    text = str(error)
    ours = _OURS.search(text)
    if ours is not None:
        said = " ".join(ours["text"].split())[:TEXT_CHARS_MAX]
        return PipelineError(said, unreachable=ours["kind"] in _UNREACHABLE)
    if type(error).__module__.startswith(("headgate.spark_udfs", "headgate.serdes")):
        return PipelineError(text, unreachable=type(error).__name__ in _UNREACHABLE)
    if "Traceback (most recent call last)" in text:
        last = [found for found in _ANY.finditer(text) if not found["kind"].startswith(("org.", "java."))]
        if last:
            return PipelineError(f"{last[-1]['kind']}: {last[-1]['text']}"[:TEXT_CHARS_MAX])
    advice = ""
    if "[STATE_STORE_" in text or "[STREAMING_STATEFUL_OPERATOR_" in text:
        advice = "what a transform gathers has changed: give it another name, so that it begins anew with rows to come"
    # A plan follows after a semicolon, traces after that.
    said = _TRACE.split(_CALL.sub("", text), maxsplit=1)[0].split(";\n", 1)[0]
    first = [line.strip() for line in said.splitlines() if line.strip()][:3]
    why = " ".join(first)[:TEXT_CHARS_MAX] or type(error).__name__
    return PipelineError("Spark could not go on", why=why, advice=advice)


@contextmanager
def naming(step: str) -> Iterator[None]:
    """Whatever goes wrong inside says which step of the pipeline it was."""
    try:
        yield
    except Exception as error:
        # A new version of a schema is not the sink's matter, and who waits for it looks for its text.
        if is_new_version(error):
            raise
        why = explained(error)
        if why.what.startswith(step):
            raise
        raise PipelineError(
            f"{step}: {why.what}", why=why.why, advice=why.advice, unreachable=why.unreachable
        ) from error
