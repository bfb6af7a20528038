"""Checks whether `reader` can read data of `writer`."""

from collections.abc import Iterable

from headgate.registry.compatibility.incompatibility import Incompatibility, Policy
from headgate.registry.compatibility.json_schema.comparison import Comparison
from headgate.registry.compatibility.json_schema.explanations import explain
from headgate.registry.compatibility.json_schema.kinds import Difference
from headgate.registry.compatibility.json_schema.pair_comparison import compare_pair
from headgate.registry.formats.json_schema import JsonSchema


def check(
    reader: JsonSchema, writer: JsonSchema, policy: Policy = Policy.STRICT, steps_max: int | None = None
) -> list[Incompatibility]:
    """All differences that prevent the reader from reading data of the writer. Empty if compatible.

    Raises `WorkLimitExceeded` after more than `steps_max` steps.
    """
    if reader.says_the_same_as(writer):
        return []
    return Comparison(policy, compare_pair, steps_max).run(writer.root, reader.root)


def check_reserved(
    reader: JsonSchema, reader_reserved: Iterable[str], writer_reserved: Iterable[str]
) -> list[Incompatibility]:
    """Names that the metadata property `confluent:reserved` reserves. They must stay reserved and unused."""
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
