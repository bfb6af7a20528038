"""Checks whether `reader` can read data of `writer`."""

from collections.abc import Iterator
from itertools import islice

from headgate.registry.compatibility.incompatibility import Incompatibility
from headgate.registry.compatibility.protobuf.comparison import Comparison
from headgate.registry.compatibility.protobuf.kinds import EXPLANATIONS, Difference
from headgate.registry.compatibility.protobuf.types import Side
from headgate.registry.formats.protobuf import ProtobufSchema
from headgate.registry.limits import INCOMPATIBILITIES_MAX


def differences(reader: ProtobufSchema, writer: ProtobufSchema) -> Iterator[Difference]:
    """All changes from writer to reader, including compatible ones."""
    return Comparison(Side(writer), Side(reader)).run()


def check(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Incompatibility]:
    """All differences that prevent the reader from reading data of the writer. Empty if compatible."""
    broken = (one for one in differences(reader, writer) if not one.kind.compatible)
    return [_explained(one) for one in islice(broken, INCOMPATIBILITIES_MAX)]


def _explained(difference: Difference) -> Incompatibility:
    message, advice = EXPLANATIONS[difference.kind]
    return Incompatibility(
        kind=difference.kind.value,
        path=difference.path,
        message=message,
        reader=difference.reader,
        writer=difference.writer,
        advice=advice,
    )
