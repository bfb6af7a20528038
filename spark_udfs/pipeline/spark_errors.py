"""Convert any exception of a run into a `PipelineError` with a short message.

Spark wraps an error of a Python worker or of the data source in the stack traces of two languages. The useful sentence
is somewhere in the middle.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from headgate.spark_udfs.driver.restarts import is_new_version
from headgate.spark_udfs.pipeline.errors import PipelineError

_OWN_ERROR = re.compile(
    r"(?:spark_udfs|serdes|kafka_client)(?:\.\w+)*\.(?P<kind>[A-Z]\w+): (?P<text>.+?)"
    r"(?=\n\s*at |\n\n|\nTraceback|\n\s*JVM|\n=== Streaming Query|\s+SQLSTATE: |\Z)",
    re.DOTALL,
)
_OWN_PACKAGES = ("headgate.spark_udfs", "headgate.serdes", "headgate.kafka_client")
_PYTHON_ERROR = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*(?:Error|Exception)): (?P<text>.+)$", re.MULTILINE)
"""The last line of a Python traceback."""
_UNREACHABLE = frozenset(
    {"BrokerUnavailable", "BrokerUnreachable", "RegistryNotReady", "RegistryUnavailable", "RegistryUnreachable"}
)
"""Errors after which a retry may succeed."""
_PY4J_PREFIX = re.compile(r"^An error occurred while calling \S+\.\n: ")
_JAVA_TRACE = re.compile(r"^\s+at [\w.$/]+\(|^JVM stacktrace:|^=== Streaming Query ===", re.MULTILINE)
TEXT_CHARS_MAX = 2000


def explained(error: BaseException) -> PipelineError:
    if isinstance(error, PipelineError):
        return error
    text = str(error)
    own = _OWN_ERROR.search(text)
    if own is not None:
        what = " ".join(own["text"].split())[:TEXT_CHARS_MAX]
        return PipelineError(what, unreachable=own["kind"] in _UNREACHABLE)
    if type(error).__module__.startswith(_OWN_PACKAGES):
        return PipelineError(text, unreachable=type(error).__name__ in _UNREACHABLE)
    if "Traceback (most recent call last)" in text:
        last = [found for found in _PYTHON_ERROR.finditer(text) if not found["kind"].startswith(("org.", "java."))]
        if last:
            return PipelineError(f"{last[-1]['kind']}: {last[-1]['text']}"[:TEXT_CHARS_MAX])
    advice = ""
    if "[STATE_STORE_" in text or "[STREAMING_STATEFUL_OPERATOR_" in text:
        advice = "the state of a transform has changed: rename the transform, so that it starts with an empty state"
    # The query plan follows a semicolon; stack traces follow the plan.
    message = _JAVA_TRACE.split(_PY4J_PREFIX.sub("", text), maxsplit=1)[0].split(";\n", 1)[0]
    lines = [line.strip() for line in message.splitlines() if line.strip()][:3]
    why = " ".join(lines)[:TEXT_CHARS_MAX] or type(error).__name__
    return PipelineError("Spark failed", why=why, advice=advice)


@contextmanager
def naming(step: str) -> Iterator[None]:
    """Prefix every error of the block with the name of the pipeline step."""
    try:
        yield
    except Exception as error:
        # The restart for a new schema version is detected by its text, so it passes unchanged.
        if is_new_version(error):
            raise
        why = explained(error)
        if why.what.startswith(step):
            raise
        raise PipelineError(
            f"{step}: {why.what}", why=why.why, advice=why.advice, unreachable=why.unreachable
        ) from error
