"""Plans of decoded DataFrames, of their parts and of dead letters."""

from typing import Any

import pytest
from pyarrow import lib as pa
from pyspark.sql.types import ArrayType, BinaryType

from headgate.serdes.framing import VALUE_HEADER
from headgate.spark_udfs import dead_letter, frame
from headgate.spark_udfs.driver.laziness import is_lazy
from headgate.spark_udfs.executor.arrow_functions import DecodePairs
from headgate.spark_udfs.frame import FrameError, apply_decoding, decode_topic, decode_types, part
from tests.unit.serdes.stub_registry import ADDRESS, StubRegistry
from tests.unit.spark_udfs.fake_spark import FakeFrame, FakeSession, schema
from tests.unit.spark_udfs.plans import binary, decoding, payload, record, text_of

pytestmark = pytest.mark.usefixtures("columns_without_session")

ORDER = record(("id", "long"), name="Order")
HEADERS = ArrayType(schema(key="string", value="binary"))
KAFKA = schema(key="binary", value="binary", topic="string", headers=HEADERS)
FRAMED = payload(ORDER, {"id": 7})
BODY = FRAMED[5:]
ARROW = pa.schema(
    [
        ("key", pa.binary()),
        ("topic", pa.string()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("value", pa.binary()),
    ]
)
DECODED = schema(key="binary", value=schema(id="long"), reason="string", schema_id="long", raw="binary")


class LazyFrame(FakeFrame):
    """A DataFrame of Spark Connect: its columns are not known."""

    @property
    def columns(self) -> list[str]:
        raise AssertionError("triggers analysis")


LazyFrame.__module__ = "pyspark.sql.connect.dataframe"


def rows(columns: Any = KAFKA) -> Any:
    return FakeSession().frame(columns)


def lazy() -> Any:
    return LazyFrame(FakeSession(), KAFKA, "df")


def run(decoded: Any) -> pa.RecordBatch:
    """Decode one record of Kafka as an executor does. The schema id is in a header."""
    given = {"key": b"k", "topic": "t", "value": BODY, "headers": [{"key": VALUE_HEADER, "value": b"\0" + FRAMED[1:5]}]}
    names = decoded.plan.partition("select(")[2].partition(")")[0].replace("`", "").split(", ")
    batch = pa.RecordBatch.from_pylist(
        [{name: given[name] for name in names}], ARROW.empty_table().select(names).schema
    )
    (found,) = decoded.function([batch])
    assert found.schema.names == decoded.columns
    return found.to_pylist()[0]


def split(frames: Any) -> tuple[Any, Any]:
    return frames.good, frames.poison


def test_all_other_columns_are_kept_and_the_outcome_is_added() -> None:
    found = apply_decoding(rows(), decoding(ORDER))
    assert found.plan == "df.select(`key`, `topic`, `headers`, `value`).mapInArrow(DecodeFrame)"
    assert found.columns == ["key", "topic", "headers", "value", "reason", "schema_id", "raw"]
    assert found.schema["value"].dataType == schema(id="long")
    result = run(found)
    assert (result["key"], result["value"], result["reason"]) == (b"k", {"id": 7}, None)


def test_headers_are_read_even_if_they_are_not_kept() -> None:
    found = apply_decoding(rows(), decoding(ORDER), keep=["topic"], details=True)
    assert found.plan == "df.select(`topic`, `headers`, `value`).mapInArrow(DecodeFrame)"
    assert found.columns == ["topic", "value", "reason", "schema_id", "raw", "detail"]
    result = run(found)
    assert (result["topic"], result["value"], result["schema_id"]) == ("t", {"id": 7}, 1)


@pytest.mark.parametrize("headers", [None, "string", ArrayType(BinaryType())])
def test_only_record_headers_are_read_as_headers(headers: Any) -> None:
    columns = schema(value="binary") if headers is None else schema(value="binary", headers=headers)
    found = apply_decoding(rows(columns), decoding(ORDER), keep=[])
    assert found.plan == "df.select(`value`).mapInArrow(DecodeFrame)"
    assert run(found)["reason"] is not None


def test_flat_fields_are_columns_and_need_a_record() -> None:
    found = apply_decoding(rows(), decoding(ORDER), keep=["key"], flat=True)
    assert found.columns == ["key", "id", "reason", "schema_id", "raw"]
    assert run(found)["id"] == 7
    with pytest.raises(FrameError, match="flat=True needs a record schema; this schema is bigint"):
        apply_decoding(rows(), decoding('"long"'), flat=True)
    with pytest.raises(FrameError, match="flat=True needs a record"):
        apply_decoding(lazy(), decoding('"long"'), flat=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"column": "payload"}, "there is no column payload; the DataFrame has key, value, topic, headers"),
        ({"column": "topic"}, "the column topic is string, and must be binary"),
        ({"keep": ["key", "nobody"]}, "there is no column nobody to keep; the DataFrame has key"),
        ({"keep": ["key", "value"]}, "duplicate columns: value; rename"),
        ({"keep": ["key", "KEY"]}, "there is no column KEY to keep"),
        ({"keep": ["key", "key"]}, "duplicate columns: key, key; rename"),
        ({"column": "key"}, "duplicate columns: value;"),
    ],
)
def test_unsuitable_columns_are_reported(options: Any, message: str) -> None:
    with pytest.raises(FrameError, match=message):
        apply_decoding(rows(), decoding(ORDER), **options)


def test_names_are_compared_without_case() -> None:
    columns = schema(value="binary", a="string", A="string", Reason="string")
    with pytest.raises(FrameError, match=r"duplicate columns: a, A, Reason; rename"):
        apply_decoding(rows(columns), decoding(ORDER))
    with pytest.raises(FrameError, match="duplicate columns: reason, reason;"):
        apply_decoding(rows(), decoding(record(("reason", "string"))), flat=True)


def test_a_topic_is_decoded_with_details_and_split(stub_registry: StubRegistry) -> None:
    stub_registry.add("orders-value", {"schema": text_of(ORDER)})
    good, poison = split(decode_topic(rows(), "orders-value", registry=ADDRESS))
    decoded = "df.select(`key`, `topic`, `headers`, `value`).mapInArrow(DecodeFrame)"
    assert good.plan == f"{decoded}.where(reason IS NULL).drop(reason, raw, detail, part, key_raw)"
    assert good.columns == ["key", "topic", "headers", "value", "schema_id"]
    assert poison.plan.startswith(f"{decoded}.where(reason IS NOT NULL).select(")
    assert poison.columns == list(dead_letter.COLUMNS)
    assert poison.sparkSession.actions == []


def test_a_decoded_topic_is_only_split() -> None:
    good, _ = split(decode_topic(rows(DECODED), "not-registered"))
    assert good.plan == "df.where(reason IS NULL).drop(reason, raw, detail, part, key_raw)"
    with pytest.raises(FrameError, match="has the columns value, reason, schema_id, raw; this one has key, value"):
        part(rows())


def test_a_lazy_topic_is_split_unless_a_schema_is_chosen(stub_registry: StubRegistry) -> None:
    good, poison = split(decode_topic(lazy()))
    removed = "struct(unresolvedstar())"
    for name in ("reason", "raw", "detail", "part", "key_raw"):
        removed = f"drop_field({removed}, {name})"
    assert good.plan == f"df.where(reason IS NULL).select({removed} AS _headgate_others).select(_headgate_others.*)"
    assert "where(reason IS NOT NULL).alias(_headgate_row)" in poison.plan
    stub_registry.add("orders-value", {"schema": text_of(ORDER)})
    for chosen in ({"subject": "orders-value"}, {"schema_id": 1}, {"schema": text_of(ORDER)}):
        good, _ = split(decode_topic(lazy(), **chosen, registry=ADDRESS))
        assert "AS _headgate_outcome" in good.plan


def test_a_lazy_frame_is_decoded_with_a_nondeterministic_column_function() -> None:
    found: Any = apply_decoding(lazy(), decoding(ORDER), column="payload", details=True)
    first, second, third = found.plan.split(".select(")[1:]
    assert first.startswith("_headgate_row.*, CAST(None AS ARRAY<STRUCT<KEY:STRING,VALUE:BINARY>>) AS headers, ") or (
        "AS headers, headers AS _headgate_headers" in first
    )
    assert "_headgate_row.`payload`, _headgate_headers" in second
    assert third == (
        "* EXCEPT (`payload`, `_headgate_outcome`), _headgate_outcome.value, _headgate_outcome.reason, "
        "_headgate_outcome.schema_id, _headgate_outcome.raw, _headgate_outcome.detail)"
    )
    flat: Any = apply_decoding(lazy(), decoding(ORDER), keep=["a`b"], flat=True)
    assert flat.plan.split(".select(")[3].startswith("`a``b`, _headgate_outcome.value.*, _headgate_outcome.reason")


def test_the_column_function_of_a_lazy_frame_has_the_requested_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []

    class Function:
        def asNondeterministic(self) -> Any:
            from pyspark.sql import functions as f

            return lambda *columns: f.lit(", ".join(columns))

    def create(function: Any, kind: Any) -> Any:
        found.append((function, kind))
        return Function()

    monkeypatch.setattr("headgate.spark_udfs.driver.lazy_frame.arrow_function_of_pairs", create)
    spec = decoding(ORDER)
    apply_decoding(lazy(), spec, details=True)
    ((function, kind),) = found
    assert isinstance(function, DecodePairs)
    (outcome,) = function(iter([(binary([FRAMED]), pa.array([None]))]))
    assert outcome.to_pylist() == [{"value": {"id": 7}, "reason": None, "schema_id": 1, "raw": None, "detail": None}]
    assert kind.names == ["value", "reason", "schema_id", "raw", "detail"]


def test_rows_of_several_subjects_are_split_by_subject(stub_registry: StubRegistry) -> None:
    decoded = schema(
        value=schema(a=schema(x="long"), b=schema(y="long")), reason="string", schema_id="long", raw="binary"
    )
    good, poison = split(decode_types(rows(decoded)))
    assert list(good) == ["a", "b"]
    parts = "df.where(reason IS NULL).drop(reason, raw, detail, part, key_raw)"
    assert good["a"].plan == (f"{parts}.where(isNotNull(value.`a`)).select(`schema_id`, `value`.`a` AS value)")
    assert "IS NOT NULL" in poison.plan
    assert list(decode_types(rows(decoded), ["b"]).good) == ["b"]
    with pytest.raises(FrameError, match="the value has the fields a, b, not b, c"):
        decode_types(rows(decoded), ["b", "c"])
    with pytest.raises(FrameError, match="has the fields , not a"):
        decode_types(rows(schema(value="long", reason="string", schema_id="long", raw="binary")), ["a"])
    with pytest.raises(FrameError, match="with Spark Connect, decode_types needs the list of subjects"):
        decode_types(lazy())
    stub_registry.add("a", {"schema": text_of(ORDER)})
    stub_registry.add("b", {"schema": text_of(record(("why", "string"), name="Refund"))})
    for df in (rows(), lazy()):
        assert list(decode_types(df, ["a", "b"], registry=ADDRESS).good) == ["a", "b"]


def test_reasons_are_counted() -> None:
    found: Any = frame.poison_counts(rows(DECODED))
    assert found.plan == "df.groupBy(reason).agg(count(unresolvedstar()) AS rows)"


def test_only_spark_connect_is_lazy_and_only_if_pyspark_has_arrow_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_lazy(lazy())
    assert not is_lazy(rows())
    monkeypatch.delattr("pyspark.sql.pandas.functions.arrow_udf")
    assert not is_lazy(lazy())


def test_dead_letters_have_fixed_columns_and_defaults_for_missing_ones() -> None:
    columns = schema(
        offset="long", value="binary", timestampType="integer", reason="string", schema_id="long", raw="binary",
        other="string",
    )  # fmt: skip
    found: Any = dead_letter.dead_letters(rows(columns))
    assert found.columns == [*dead_letter.COLUMNS, "other"]
    assert found.plan.startswith("df.where(reason IS NOT NULL).select(CAST(NULL AS STRING) AS topic, ")
    assert "CAST(offset AS BIGINT) AS offset" in found.plan
    assert "element_at(map(" in found.plan
    detailed: Any = dead_letter.dead_letters(rows(DECODED.add("detail", "string").add("key_raw", "binary")))
    assert "CAST(detail AS STRING) AS detail" in detailed.plan
    assert detailed.plan.startswith("df.where(reason IS NOT NULL).withColumn(key, key_raw).select(")
    assert detailed.columns == list(dead_letter.COLUMNS)


def test_lazy_dead_letters_use_the_raw_key_if_it_exists() -> None:
    letters: Any = dead_letter.dead_letters(lazy())
    plan = letters.plan
    aliased, selected, staged, leading, last = plan.split(".select(")
    assert aliased == "df.where(reason IS NOT NULL).alias(_headgate_row)"
    assert selected.startswith("_headgate_row.*, CAST(NULL AS STRING) AS topic, ")
    assert "key AS key_raw, topic AS _headgate_topic" in selected
    assert staged.startswith("_headgate_topic, _headgate_partition")
    assert "struct(True AS _headgate_pad, " in staged
    assert staged.endswith(", value), timestampType), key_raw) AS _headgate_others)")
    assert leading.startswith("CAST(_headgate_topic AS STRING) AS topic, ")
    assert "CAST(_headgate_key_raw AS BINARY) AS key, " in leading
    assert leading.endswith("AS schema_id, _headgate_others.*)")
    assert last == "* EXCEPT (`_headgate_pad`))"


def test_dead_letter_records_have_the_headers_of_every_tool() -> None:
    table = schema(
        **dead_letter.COLUMNS | {"headers": "string", "partition": "integer", "offset": "long", "schema_id": "long"}
    )
    found: Any = dead_letter.to_dead_letter_records(rows(table), "dead", application="app")
    plan = found.plan
    assert found.columns == ["topic", "key", "value", "headers"]
    assert plan.startswith("df.alias(_headgate_row).select(_headgate_row.*, value AS part, part AS _headgate_part)")
    assert "dead AS topic, key, raw AS value" in plan
    assert "substring(detail, 1, 2000)" in plan
    assert "struct(headgate.dead_letter.topic AS key, encode(CAST(topic AS STRING), UTF-8) AS value)" in plan
    # An invalid or negative number of attempts counts as 0.
    assert "+(coalesce(CASE WHEN rlike(CAST(get(filter(" in plan
    assert ", 0)['value'] AS STRING) AS BIGINT) END, 0), 1) AS STRING)" in plan
    by_source: Any = dead_letter.to_dead_letter_records(rows(table), application="app", suffix=".failed")
    assert "concat(topic, .failed) AS topic, key" in by_source.plan
    assert plan.count("filter(coalesce(headers, CAST(array() AS ARRAY<STRUCT<KEY:STRING,VALUE:BINARY>>))") == 3
