"""Checks whether `reader` can read data of `writer`."""

from headgate.registry.compatibility.incompatibility import Incompatibility, Policy
from headgate.registry.compatibility.json_schema.comparison import Comparison
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
