"""Limits of a pipeline file, unknown keys of transforms, and the session of a pipeline."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructType

from headgate.serdes.avro import parse
from headgate.spark_udfs.pipeline import avro_schema, session
from headgate.spark_udfs.pipeline.checks import load
from headgate.spark_udfs.pipeline.checks.load import check
from headgate.spark_udfs.pipeline.document import parse_toml
from headgate.spark_udfs.pipeline.errors import PipelineError, PipelineMistakes

HEAD = 'checkpoint = "s"\non_poison = "DROP"\n[sources.a]\ntype = "topic"\n[sources.b]\ntype = "topic"\n'
SINK = '[sinks.{}]\ntype = "console"\nfrom = "a"\n'


def checked(text: str) -> Any:
    return check(parse_toml(text, "p.toml", Path("/pipelines"), {}), {})


def test_sources_transforms_and_sinks_are_limited_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "STEPS_MAX", 4)
    checked(HEAD + SINK.format("c") + SINK.format("d"))
    with pytest.raises(PipelineMistakes, match="the pipeline has 5 steps; the maximum is 4"):
        checked(HEAD + SINK.format("c") + SINK.format("d") + SINK.format("e"))


def test_unknown_keys_of_a_transform_are_reported_once_its_type_is_known() -> None:
    text = HEAD + SINK.format("c") + '[transforms.t]\ntype = "{}"\nsql = "SELECT * FROM a"\ncolour = "red"\n'
    with pytest.raises(PipelineMistakes, match="colour"):
        checked(text.format("sql"))
    with pytest.raises(PipelineMistakes) as caught:
        checked(text.format("sqql"))
    assert "colour" not in str(caught.value)


class FakeBuilder:
    """Records the settings of a new session."""

    error: Exception | None = None
    settings: dict[str, str]

    def appName(self, name: str) -> "FakeBuilder":
        FakeBuilder.settings = {"name": name}
        return self

    def config(self, name: str, value: str) -> "FakeBuilder":
        self.settings[name] = value
        return self

    def master(self, value: str) -> "FakeBuilder":
        return self.config("master", value)

    def getOrCreate(self) -> Any:
        if self.error is not None:
            raise self.error
        return "new session"


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> type[FakeBuilder]:
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT", "MASTER", "SPARK_LOCAL_IP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "python")
    monkeypatch.setattr(session, "find_java", lambda: None)
    fake = SimpleNamespace(getActiveSession=lambda: None, Builder=FakeBuilder)
    monkeypatch.setattr("pyspark.sql.SparkSession", fake)
    return FakeBuilder


def opened(spark: str = "") -> Any:
    return session.open_session(checked(f"{HEAD}{SINK.format('c')}[spark]\n{spark}\n"))


def test_a_local_session_has_the_defaults_of_headgate(
    builder: type[FakeBuilder], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert opened('sql.shuffle.partitions = "3"') == "new session"
    assert builder.settings["name"] == "headgate p"
    assert builder.settings["master"] == "local[*]"
    assert builder.settings["spark.python.daemon.module"] == "headgate.spark_udfs.daemon"
    assert builder.settings["spark.sql.shuffle.partitions"] == "3"
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    monkeypatch.delenv("SPARK_LOCAL_IP")
    opened('master = "yarn"')
    assert "master" not in builder.settings
    monkeypatch.setenv("MASTER", "yarn")
    opened()
    assert "master" not in builder.settings
    assert "SPARK_LOCAL_IP" not in os.environ


def test_a_submitted_session_has_the_settings_of_the_file_only(
    builder: type[FakeBuilder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    opened('sql.shuffle.partitions = "3"')
    assert builder.settings == {"name": "headgate p", "spark.sql.shuffle.partitions": "3"}


def test_an_active_session_is_reused_and_a_failed_start_is_explained(
    builder: type[FakeBuilder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeBuilder, "error", PySparkRuntimeError("no gateway"))
    with pytest.raises(PipelineError, match="Spark does not start") as caught:
        opened()
    assert "Java 17 or newer" in caught.value.advice
    active = SimpleNamespace(getActiveSession=lambda: "active", Builder=FakeBuilder)
    monkeypatch.setattr("pyspark.sql.SparkSession", active)
    assert opened() == "active"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[sources.A]\ntype = "topic"\n', "sources.A: conflicts with a: SQL names are case-insensitive"),
        ('[transforms.A]\ntype = "sql"\nsql = "SELECT * FROM a"\n', "transforms.A: conflicts with a"),
        ('[transforms.t]\ntype = "sql"\nsql = "SELECT 1"\nfrom = ["x"]\n', r"x is neither .* \(known: a, b, t\)"),
        ('[transforms.t]\ntype = "sql"\nsql = "SELECT 1"\nfrom = ["a", " "]\n', "from: expected a list of strings"),
        ('[transforms.t]\ntype = "sql"\nsql = "SELECT 1"\nfrom = [5]\n', "from: expected a list of strings"),
        ('[transforms.t]\ntype = "sql"\nsql = "SELECT 1"\nfrom = 5\n', "from: expected a list of strings, not 5"),
        ('[transforms.t]\ntype = "sql"\nsql = "SELECT 1"\nfrom = ["a", "a"]\n', "from: contains a twice"),
        ('[transforms.t]\ntype = "join"\nleft = "x"\nright = "a"\non = "1"\nselect = ["*"]\n', "transforms.t.left: x"),
        ('[transforms.t]\ntype = "join"\nleft = "a"\nright = "x"\non = "1"\nselect = ["*"]\n', "transforms.t.right: x"),
    ],
)
def test_names_of_steps_are_checked(text: str, message: str) -> None:
    with pytest.raises(PipelineMistakes, match=message):
        checked(HEAD + SINK.format("c") + text)


def test_a_pipeline_without_steps_has_no_known_names() -> None:
    with pytest.raises(PipelineMistakes, match=r"\(known: none\)"):
        checked('checkpoint = "s"\n' + SINK.format("c"))


def nested(levels: int) -> Any:
    kind: Any = LongType()
    for level in range(levels):
        kind = (ArrayType(kind), MapType(StringType(), kind), StructType().add("f", kind))[level % 3]
    return StructType().add("a", kind)


def test_derived_schemas_have_a_limited_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_schema, "DEPTH_MAX", 6)
    parse(avro_schema.avro_text(nested(6), "x"))
    with pytest.raises(PipelineError, match="nested deeper than 6 levels"):
        avro_schema.avro_text(nested(7), "x")
    assert '"name": "Row"' in avro_schema.avro_text(StructType().add("a", LongType()), "123")
