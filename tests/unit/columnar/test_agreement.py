"""Random schemas, readers, values and damage: columns agree with the row-wise decoder and with fastavro."""

import io
import json
from collections import Counter
from random import Random
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import lib as pa

from headgate.serdes.avro import Encoder, parse
from headgate.serdes.avro.column_size import ColumnLimits
from headgate.serdes.columnar import ColumnarDecoder, ColumnarEncoder, Engine, FixedSchemas, Plain
from tests.rounds import rounds
from tests.unit.columnar.agreement import FRAME, check, is_whole, payloads_of, round_of, run
from tests.unit.columnar.checked import Checked
from tests.unit.columnar.oracle import rows_of, same
from tests.unit.serdes.avro_strategies import evolved, schemas, values

PROPERTY = settings(
    max_examples=rounds(40, 400),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def fastavro_read(body: bytes, writer: Any, reader: Any) -> Any:
    copies = [fastavro.parse_schema(json.loads(json.dumps(schema))) for schema in (writer, reader)]
    return fastavro.schemaless_reader(io.BytesIO(body), copies[0], copies[1])


def decoded(body: bytes, writer: Any, reader: Any) -> Any:
    parsed = parse(json.dumps(reader))
    decoder = ColumnarDecoder(parsed, FixedSchemas({1: json.dumps(writer)}))
    batch = decoder.decode(pa.array([FRAME + (body[1:] if is_whole(writer) else body)], pa.binary()))
    assert batch.reasons.to_pylist() == [0]
    return rows_of(batch.values, parsed)[0]


@PROPERTY
@given(st.data())
def test_columns_contain_the_written_values(data: st.DataObject) -> None:
    schema = data.draw(schemas(logical=True))
    value = data.draw(values(schema))
    body = Encoder(parse(json.dumps(schema))).encode(value)
    assert same(decoded(body, schema, schema), value)


@PROPERTY
@given(st.data())
def test_columns_of_an_evolved_reader_agree_with_fastavro(data: st.DataObject) -> None:
    writer = data.draw(schemas(root="record"))
    reader = data.draw(evolved(writer))
    body = Encoder(parse(json.dumps(writer))).encode(data.draw(values(writer)))
    assert same(decoded(body, writer, reader), fastavro_read(body, writer, reader))


@PROPERTY
@given(st.randoms(use_true_random=False))
def test_columns_agree_with_the_row_wise_decoder_on_any_schema_and_any_damage(rng: Random) -> None:
    run(rng, rows=10)


@pytest.mark.parametrize("damage", [0.0, 0.3, 0.9])
def test_columns_agree_with_the_row_wise_decoder_over_many_seeds(damage: float) -> None:
    met: Counter[int] = Counter()
    for seed in range(rounds(120, 1000)):
        met += run(Random(seed), rows=40, damage=damage)
    assert met[0] > 500
    if damage:
        assert min(met[reason] for reason in range(1, 10)) > 10, met


@pytest.mark.parametrize("engine", [Plain(), Checked()], ids=["plain", "checked"])
def test_without_numba_columns_agree_with_the_row_wise_decoder(engine: Engine) -> None:
    met: Counter[int] = Counter()
    for seed in range(2000, 2000 + rounds(60, 500)):
        met += run(Random(seed), [engine])
    assert met[0] > 500
    assert min(met[reason] for reason in range(1, 10)) > 10, met


@pytest.mark.parametrize("engine", [None, Checked()], ids=["compiled", "checked"])
def test_columns_are_encoded_and_decoded_again(engine: Engine | None) -> None:
    checked = 0
    for seed in range(3000, 3000 + rounds(60, 600)):
        rng = Random(seed)
        made = round_of(rng)
        if made is None:
            continue
        checked += 1
        reader = parse(json.dumps(made[1]))
        payloads = payloads_of(rng, made[0], 25, 0.1)
        decoder = ColumnarDecoder(reader, FixedSchemas({1: json.dumps(made[0])}), recursion_max=1)
        batch = decoder.decode(pa.array(payloads, pa.binary()))
        skipped = rng.randrange(10)
        good = [row for row in range(skipped, 25) if batch.reasons[row].as_py() == 0]
        encoded = ColumnarEncoder(reader, 1, engine=engine).encode(batch.values.slice(skipped))
        encoded.payloads.validate(full=True)
        again = encoded.payloads.take(pa.array([row - skipped for row in good], pa.int64()))
        second = ColumnarDecoder(reader, FixedSchemas({1: json.dumps(made[1])}), recursion_max=1).decode(again)
        assert set(second.reasons.to_pylist()) <= {0}
        assert second.values.equals(batch.values.take(pa.array(good, pa.int64()))) or all(
            map(same, rows_of(second.values, reader), [rows_of(batch.values, reader)[row] for row in good])
        )
        check(second, again.to_pylist(), reader, reader, ColumnLimits(recursion_max=1))
    assert checked > 30
