"""Our descriptors equal those of protoc, for files that use all parts of the language."""

from pathlib import Path

import grpc_tools
import pytest
from google.protobuf import descriptor_pb2

from headgate.registry.formats.protobuf import KNOWN_FILES, parse
from tests.unit.registry.protobuf.protoc import KNOWN, PROTOS, RUNTIME, comparable, compiled

HANDWRITTEN = {str(path.relative_to(PROTOS)): path.read_text("utf-8") for path in sorted(PROTOS.rglob("*.proto"))}
LIBRARY = Path(grpc_tools.__file__).parent.parent
# Files of googleapis-common-protos, which are widely imported and have many custom options.
PUBLISHED = {
    str(path.relative_to(LIBRARY)): path.read_text("utf-8")
    for directory in ("api", "type", "rpc", "logging", "cloud")
    for path in sorted((LIBRARY / "google" / directory).rglob("*.proto"))
}


@pytest.mark.parametrize("name", HANDWRITTEN)
def test_a_handwritten_file_gives_the_descriptor_of_protoc(name: str) -> None:
    expected = compiled(name, HANDWRITTEN)
    assert expected is not None
    assert comparable(parse(HANDWRITTEN[name], HANDWRITTEN).main.proto) == comparable(expected)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_file_gives_the_descriptor_of_protoc(name: str) -> None:
    expected = compiled(name, PUBLISHED)
    assert expected is not None
    assert comparable(parse(PUBLISHED[name], PUBLISHED).main.proto) == comparable(expected)


@pytest.mark.parametrize("name", sorted(KNOWN_FILES))
def test_a_well_known_file_gives_the_descriptor_of_protoc(name: str) -> None:
    kept = KNOWN / name
    text = (kept if kept.exists() else RUNTIME / name).read_text("utf-8")
    expected = compiled(name, {})
    assert expected is not None
    assert comparable(parse(text, {}).main.proto) == comparable(expected)


@pytest.mark.parametrize("name", sorted(name for name in KNOWN_FILES if name.startswith("google/type/")))
def test_the_bundled_google_types_equal_the_published_ones(name: str) -> None:
    ours, theirs = parse((KNOWN / name).read_text("utf-8"), {}), parse(PUBLISHED[name], PUBLISHED)
    assert _without_options(ours.main.proto) == _without_options(theirs.main.proto)


def _without_options(proto: descriptor_pb2.FileDescriptorProto) -> descriptor_pb2.FileDescriptorProto:
    copy = comparable(proto, sort_fields=True)
    copy.ClearField("options")
    return copy
