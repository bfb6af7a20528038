"""Column functions, SQL functions and `foreachBatch`, without a session."""

from typing import Any

import httpx
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import BinaryType, StringType

from headgate.spark_udfs.batches import decode_each_batch
from headgate.spark_udfs.driver import arrow_udf
from headgate.spark_udfs.driver.planning import choice_of, plan_decoding
from headgate.spark_udfs.driver.reader_choice import ReaderError, TypedChoice
from headgate.spark_udfs.driver.registry_resolution import resolve
from headgate.spark_udfs.driver.restarts import run_restarting
from headgate.spark_udfs.executor.arrow_functions import DecodeReason, EncodeColumn
from headgate.spark_udfs.executor.encoding import EncodingError
from headgate.spark_udfs.extra import MissingExtra
from headgate.spark_udfs.frame import FrameError
from headgate.spark_udfs.functions import from_registry_avro, poison_reason, schema_id, to_registry_avro
from headgate.spark_udfs.spec.policy import RESTART_SENTENCE
from headgate.spark_udfs.sql import install, register_function
from tests.unit.serdes.stub_registry import ADDRESS, StubRegistry
from tests.unit.spark_udfs.fake_spark import FakeSession, schema, shown
from tests.unit.spark_udfs.plans import binary, payload, record, text_of

pytestmark = pytest.mark.usefixtures("columns_without_session")

ORDER = record(("id", "long"), name="Order")
NEW = record(("id", "long"), ("note", "string", {"default": "-"}), name="Order")
GOOD = payload(ORDER, {"id": 7})


@pytest.fixture
def registry(stub_registry: StubRegistry) -> StubRegistry:
    stub_registry.add("orders-value", {"schema": text_of(ORDER)})
    return stub_registry


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The functions on Arrow arrays that become column functions, and their types."""
    found: list[Any] = []

    def create(function: Any, kind: Any) -> Any:
        found.append((function, kind))
        return lambda column: f"called({shown(column)})"

    monkeypatch.setattr(arrow_udf, "arrow_function", create)
    return found


def test_a_column_is_decoded_with_required_fields(registry: StubRegistry, created: list[Any]) -> None:
    called: Any = from_registry_avro("payload", "orders-value", registry=ADDRESS)
    assert called == "called(payload)"
    ((function, kind),) = created
    assert kind.simpleString() == "struct<value:struct<id:bigint>,reason:string,schema_id:bigint,raw:binary>"
    assert not kind["value"].dataType["id"].nullable
    (found,) = function(iter([binary([GOOD])]))
    assert found.to_pylist() == [{"value": {"id": 7}, "reason": None, "schema_id": 1, "raw": None}]


def test_a_value_of_several_subjects_has_no_required_fields(registry: StubRegistry, created: list[Any]) -> None:
    registry.add("refunds-value", {"schema": text_of(record(("id", "long"), name="Refund"))})
    from_registry_avro("payload", ["orders-value", "refunds-value"], registry=ADDRESS)
    from_registry_avro("payload", schema=text_of(ORDER), registry=ADDRESS, on_poison="NULL")
    (_, several), (_, one) = created
    assert several["value"].dataType["orders-value"].nullable
    assert several["value"].dataType["orders-value"].dataType["id"].nullable
    assert one.names == ["value", "reason", "schema_id"]


def test_the_reason_of_a_payload_is_a_string(registry: StubRegistry, created: list[Any]) -> None:
    poison_reason("payload", "orders-value", registry=ADDRESS)
    ((function, kind),) = created
    assert isinstance(function, DecodeReason)
    assert kind == StringType()


@pytest.mark.parametrize(
    ("on_poison", "kind"),
    [("FAIL", "binary"), ("NULL", "binary"), ("DEAD_LETTER", "struct<value:binary,reason:string>")],
)
def test_structs_are_encoded_to_payloads(registry: StubRegistry, created: list[Any], on_poison: str, kind: str) -> None:
    to_registry_avro("row", "orders-value", registry=ADDRESS, on_poison=on_poison)
    ((function, found),) = created
    assert isinstance(function, EncodeColumn)
    assert found.simpleString() == kind


def test_a_schema_is_registered_without_normalization_by_default(registry: StubRegistry, created: list[Any]) -> None:
    to_registry_avro("row", "new-value", schema=text_of(ORDER), registry=ADDRESS)
    assert registry.subjects["new-value"] == [1]
    assert not any("normalize=true" in path for path in registry.paths())
    to_registry_avro("row", "new-value", schema=text_of(ORDER), registry=ADDRESS, normalize=True)
    assert any("normalize=true" in path for path in registry.paths())
    with pytest.raises(EncodingError, match="unknown-value: Schema not found"):
        to_registry_avro("row", "unknown-value", schema=text_of(ORDER), registry=ADDRESS, register=False)
    assert "unknown-value" not in registry.subjects


def test_encoding_needs_arrow_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("pyspark.sql.pandas.functions.arrow_udf")
    with pytest.raises(MissingExtra, match=r"needs PySpark 4\.1 or later"):
        to_registry_avro("row", "orders-value", registry=ADDRESS)


@pytest.mark.parametrize("column", ["payload", "column"])
def test_the_schema_id_is_read_from_a_framed_payload(column: str) -> None:
    from pyspark.sql import functions as f

    found = schema_id(f.col("payload") if column == "column" else "payload")
    assert shown(found) == (
        "CASE WHEN and(>=(octet_length(payload), 5), ==(substring(payload, 1, 1), b'\\x00')) "
        "THEN CAST(conv(hex(substring(payload, 2, 4)), 16, 10) AS BIGINT) END"
    )


class SqlSession(FakeSession):
    """A session that records registered functions."""

    def __init__(self, error: Exception | None = None, **conf: str) -> None:
        super().__init__(**conf)
        self.registered: dict[str, Any] = {}
        self._error = error
        self.udf: Any = self
        self.udtf: Any = self
        self.dataSource: Any = type("Sources", (), {"register": staticmethod(self._register_source)})()

    def register(self, name: str, function: Any) -> None:
        self.registered[name] = function

    def _register_source(self, source: Any) -> None:
        if self._error is not None:
            raise self._error
        self.registered[source.name()] = source


def test_sql_functions_and_the_data_source_are_registered(
    registry: StubRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    session: Any = SqlSession(spark__headgate__registry__url=ADDRESS)
    install(session)
    assert set(session.registered) == {"headgate", "headgate_decode"}
    assert session.actions[0].startswith("sql(CREATE OR REPLACE TEMPORARY FUNCTION headgate_schema_id(payload BINARY)")
    register_function(session, "decode_order", "orders-value")
    assert "decode_order" in session.registered
    known: Any = SqlSession(PySparkException("[DATA_SOURCE_ALREADY_EXISTS] headgate"))
    install(known)
    assert set(known.registered) == {"headgate_decode"}
    with pytest.raises(PySparkException, match="other"):
        install(SqlSession(PySparkException("other")))  # type: ignore[arg-type]
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(FrameError, match="no active Spark session"):
        install()
    active = SqlSession()
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: active)
    install()
    assert "headgate_decode" in active.registered


@pytest.mark.parametrize(("on_new_version", "fields"), [("KEEP", ["id"]), ("RESTART", ["id", "note"])])
def test_each_batch_is_decoded_once_and_restart_reads_new_versions(
    registry: StubRegistry, on_new_version: str, fields: list[str]
) -> None:
    batches: list[Any] = []

    def handle(good: Any, poison: Any, number: int) -> None:
        batches.append((good.schema["value"].dataType.names, poison.columns[:2], number, list(session.actions)))

    each = decode_each_batch(handle, "orders-value", registry=ADDRESS, on_new_version=on_new_version)
    session = FakeSession()
    each(session.frame(schema(value="binary")), 1)  # type: ignore[arg-type]
    assert batches == [(["id"], ["topic", "partition"], 1, ["persist"])]
    assert session.actions == ["persist", "unpersist"]
    registry.add("orders-value", {"schema": text_of(NEW)})
    each(session.frame(schema(value="binary")), 2)  # type: ignore[arg-type]
    assert batches[1][0] == fields
    registry.intercept = lambda request: httpx.Response(503)
    each(session.frame(schema(value="binary")), 3)  # type: ignore[arg-type]
    assert batches[2][0] == fields


def test_a_batch_is_not_kept_after_a_failure(registry: StubRegistry) -> None:
    def handle(good: Any, poison: Any, number: int) -> None:
        raise OSError("full")

    session = FakeSession()
    with pytest.raises(OSError, match="full"):
        decode_each_batch(handle, "orders-value", registry=ADDRESS)(session.frame(schema(value="binary")), 1)  # type: ignore[arg-type]
    assert session.actions == ["persist", "unpersist"]


def test_options_of_one_reader_cannot_be_used_with_several_subjects() -> None:
    assert choice_of(["a", "b"]) == TypedChoice(("a", "b"))
    assert choice_of(["a"], version=2) == choice_of("a", version=2)
    with pytest.raises(ReaderError, match="version and fields can be used with one subject only"):
        choice_of(["a", "b"], version=1, fields=["id"])
    with pytest.raises(ReaderError, match="must be a list of field names, not the string 'id'"):
        choice_of("a", fields="id")


@pytest.mark.parametrize("recursion_max", [-1, 21])
def test_the_depth_of_recursive_records_is_limited(registry: StubRegistry, recursion_max: int) -> None:
    choice = choice_of("orders-value")
    for allowed in (0, 20):
        assert plan_decoding(choice, ADDRESS, recursion_max=allowed).recursion_max == allowed
    with pytest.raises(ReaderError, match=f"must be between 0 and 20, not {recursion_max}"):
        plan_decoding(choice, ADDRESS, recursion_max=recursion_max)


def test_machine_code_is_shipped_for_avro_only(registry: StubRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.spark_udfs.driver.planning.code_to_ship", lambda kernels: (("kernel", b"code"),))
    monkeypatch.setattr("headgate.spark_udfs.executor.decoding.use_shipped", lambda code: None)
    registry.add("words-value", {"schema": '{"type": "object"}', "schemaType": "JSON"})
    assert plan_decoding(choice_of("orders-value"), ADDRESS).code == (("kernel", b"code"),)
    assert plan_decoding(choice_of("words-value"), ADDRESS).code == ()


def test_the_registry_comes_from_the_column_the_session_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_REGISTRY_URL", raising=False)
    session = FakeSession(spark__headgate__registry__url="http://conf", spark__headgate__registry__token="secret")
    plain: Any = session.frame(schema(value="binary"))
    assert resolve(None, plain).urls == ("http://conf",)
    assert resolve(None, None, session).urls == ("http://conf",)  # type: ignore[arg-type]
    marked: Any = session.frame(schema().add("value", BinaryType(), True, {"headgate.registry.url": "http://column"}))
    assert resolve(None, marked).urls == ("http://column",)
    assert resolve("http://given", marked).urls == ("http://given",)
    assert resolve(None, marked, column="other").urls == ("http://conf",)
    monkeypatch.setenv("HEADGATE_REGISTRY_URL", "http://environment")
    assert resolve(None, FakeSession().frame(schema(value="binary"))).urls == (  # type: ignore[arg-type]
        "http://environment",
    )


class EndingQuery:
    def __init__(self, error: Exception | None) -> None:
        self.error = error

    def awaitTermination(self) -> None:
        if self.error is not None:
            raise self.error


def test_a_query_restarts_only_for_new_versions() -> None:
    started: list[Any] = []

    def start_with(*errors: Exception | None) -> Any:
        waiting = [EndingQuery(error) for error in errors]

        def start() -> Any:
            started.append(waiting.pop(0))
            return started[-1]

        return start

    new_version = RuntimeError(f"STREAM_FAILED: {RESTART_SENTENCE}")
    assert run_restarting(start_with(new_version, new_version, None)) is started[2]
    with pytest.raises(RuntimeError, match="other"):
        run_restarting(start_with(new_version, RuntimeError("other")))
    with pytest.raises(RuntimeError, match="2 restarts for new schema versions"):
        run_restarting(start_with(new_version, new_version), restarts_max=2)
