"""Can `reader` read what `writer` wrote?"""

from collections.abc import Iterable

from headgate.registry.compatibility.incompatibility import Incompatibility, Policy
from headgate.registry.compatibility.json_schema.comparison import Comparison
from headgate.registry.compatibility.json_schema.explanations import explain
from headgate.registry.compatibility.json_schema.judgement import judge
from headgate.registry.compatibility.json_schema.kinds import Difference
from headgate.registry.formats.json_schema import JsonSchema


def check(
    reader: JsonSchema, writer: JsonSchema, policy: Policy = Policy.STRICT, steps_max: int | None = None
) -> list[Incompatibility]:
    """Everything that keeps a reader from what the writer may have written; empty when it can be read.

    Raises `WorkLimitExceeded` when that takes more than `steps_max` steps.
    """
    if reader.says_the_same_as(writer):
        return []
    return Comparison(policy, judge, steps_max).run(writer.root, reader.root)


def check_reserved(
    reader: JsonSchema, reader_reserved: Iterable[str], writer_reserved: Iterable[str]
) -> list[Incompatibility]:
    """Names set aside by the metadata property `confluent:reserved`: they stay reserved and are not used."""
    kept = list(dict.fromkeys(reader_reserved))
    found = [
        _reserved(Difference.RESERVED_PROPERTY_REMOVED, name)
        for name in dict.fromkeys(writer_reserved)
        if name not in kept
    ]
    properties = reader.root.named("properties")
    found += [
        _reserved(Difference.RESERVED_PROPERTY_CONFLICTS_WITH_PROPERTY, f"#/properties/{name}")
        for name in kept
        if name in properties
    ]
    return found


def _reserved(kind: Difference, path: str) -> Incompatibility:
    message, advice = explain(kind, path)
    return Incompatibility(kind=kind.value, path=path, message=message, advice=advice)
