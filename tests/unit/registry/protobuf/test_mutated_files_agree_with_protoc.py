"""Random changes to files: we accept the same files as protoc, with the same descriptor."""

import random
import re

import pytest

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf import ProtobufSchema, parse
from headgate.registry.formats.protobuf.lexer import Kind, tokenize
from tests.unit.registry.protobuf.protoc import PROTOS, comparable, compiled

FILES = {str(path.relative_to(PROTOS)): path.read_text("utf-8") for path in sorted(PROTOS.rglob("*.proto"))}
# Edition 2024 enforces a naming style, which the registry does not enforce.
MUTATED = [name for name in FILES if "/" not in name and name != "editions_2024.proto"]
TOKENS = {name: [text for text in tokenize(FILES[name]).texts if text] for name in MUTATED}
ALL_TOKENS = [text for name in MUTATED for text in TOKENS[name]]


def mutated(seed: int) -> str:
    chosen = random.Random(seed)
    tokens = list(TOKENS[chosen.choice(MUTATED)])
    at = chosen.randrange(len(tokens))
    match chosen.randrange(6):
        case 0:
            del tokens[at]
        case 1:
            tokens.insert(at, tokens[at])
        case 2:
            tokens.insert(at, chosen.choice(ALL_TOKENS))
        case _:
            # Another token of the same kind. Most of these still parse, and some are still valid.
            sort = tokenize(tokens[at]).kinds[0]
            pool = tokens if chosen.random() < 0.5 else ALL_TOKENS
            same = [text for text in pool if tokenize(text).kinds[0] is sort and (sort is not Kind.SIGN)]
            tokens[at] = chosen.choice(same or pool)
    return re.sub(r"(?<=\w) \. (?=\w)", ".", " ".join(tokens))


def accepted(text: str) -> ProtobufSchema | None:
    try:
        return parse(text, FILES)
    except InvalidSchema:
        return None


@pytest.mark.parametrize("seed", range(0, 240, 12))
def test_twelve_mutants_have_the_result_of_protoc(seed: int) -> None:
    for one in range(seed, seed + 12):
        text = mutated(one)
        expected, ours = compiled("mutant.proto", {**FILES, "mutant.proto": text}), accepted(text)
        if expected is None:
            # The only difference to protoc: undefined options are accepted, as in Confluent's registry.
            assert ours is None or "uninterpreted_option" in str(ours.main.proto), f"seed {one}: {text}"
            continue
        assert ours is not None, f"seed {one}: {text}"
        assert comparable(ours.main.proto) == comparable(expected), f"seed {one}: {text}"
        again = parse(ours.canonical, FILES)
        assert again.canonical == ours.canonical
        assert comparable(again.main.proto, sort_fields=True) == comparable(ours.main.proto, sort_fields=True)
        assert parse(ours.serialized(), FILES).normalized() == ours.normalized()
