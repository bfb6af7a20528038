"""The text of an exported declarative pipeline. `tests/spark/deployment` runs one."""

import ast
from pathlib import Path

import pytest
import yaml

from headgate.spark_udfs.pipeline import PipelineError, PipelineMistakes, load
from headgate.spark_udfs.pipeline.export import Project, export
from headgate.spark_udfs.pipeline.export.project import MODULE, SPECIFICATION

EXAMPLES = Path(__file__).resolve().parents[4] / "examples" / "pipelines"
START = """
name = "shop"
checkpoint = "state"
"""
ORDERS = """
[sources.orders]
type = "topic"
"""
LAKE = """
[sinks.lake]
type = "parquet"
from = "orders"
path = "lake"
"""
LETTERS = """
[dead_letters]
type = "topic"
topic = "orders.dead"
"""


def exported(folder: Path, text: str, **environment: str) -> Project:
    (folder / "shop.toml").write_text(START + text, encoding="utf-8")
    return export(load(folder / "shop.toml", environment=environment))


def mistakes_of(folder: Path, text: str) -> dict[str, str]:
    with pytest.raises(PipelineMistakes) as raised:
        exported(folder, text)
    return {each.path: each.message for each in raised.value.mistakes}


def test_a_pipeline_becomes_a_specification_and_a_module(tmp_path: Path) -> None:
    project = exported(tmp_path, ORDERS + LAKE + LETTERS + "[spark]\nsql.shuffle.partitions = 8\n")
    assert yaml.safe_load(project.files[SPECIFICATION]) == {
        "name": "shop",
        "storage": (tmp_path / "state").as_uri(),
        "libraries": [{"glob": {"include": "transformations/pipeline.py"}}],
        "configuration": {
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "8",
        },
    }
    functions = [each.name for each in ast.parse(project.files[MODULE]).body if isinstance(each, ast.FunctionDef)]
    assert functions == ["orders_decoded", "orders_rows", "lake_table", "letters", "all_letters"]
    assert "@dp.table(name='lake', format='parquet')" in project.files[MODULE]
    assert project.variables == ()


def test_credentials_become_environment_variables(tmp_path: Path) -> None:
    options = """
[kafka]
bootstrap.servers = "kafka:9092"
security.protocol = "SASL_PLAINTEXT"
sasl.mechanism = "PLAIN"
sasl.username = "ada"
sasl.password = "hunter2"
[registry]
url = "http://ada:hunter3@registry:8081"
"""
    project = exported(tmp_path, options + ORDERS + LAKE + LETTERS)
    text = "".join(project.files.values())
    assert "hunter" not in text
    assert project.variables == ("KAFKA_SASL_PASSWORD", "REGISTRY_URL")
    assert "os.environ['KAFKA_SASL_PASSWORD']" in text
    assert "os.environ.get('HEADGATE_BOOTSTRAP_SERVER', 'kafka:9092')" in text


def test_values_of_the_file_are_literals_in_the_module(tmp_path: Path) -> None:
    sql = "SELECT '\\\\\"'' + __import__(1) AS x FROM orders"
    text = (
        f"{ORDERS}[transforms.odd]\ntype = \"sql\"\nsql = '''{sql}'''\n" + LAKE.replace('"orders"', '"odd"') + LETTERS
    )
    module = ast.parse(exported(tmp_path, text).files[MODULE])
    assert [each.value for each in ast.walk(module) if isinstance(each, ast.Constant) and sql in str(each.value)]


def test_a_watermark_is_a_sql_clause_because_a_pipeline_cannot_analyze_rows(tmp_path: Path) -> None:
    window = """
watermark = { column = "at", delay = "10 minutes" }
[transforms.hours]
type = "window"
from = "orders"
window = "tumbling"
time = "at"
size = "1 hour"
select = { n = "count(*)" }
"""
    text = exported(tmp_path, ORDERS + window + LAKE.replace('"orders"', '"hours"') + LETTERS).files[MODULE]
    assert "SELECT * FROM STREAM orders_rows WATERMARK `at` DELAY OF INTERVAL 10 minutes" in text


def test_every_step_that_cannot_be_exported_is_reported() -> None:
    found = {}
    for name in ("orders.toml", "revenue.toml", "import.yaml", "delta.toml"):
        with pytest.raises(PipelineMistakes) as raised:
            export(load(EXAMPLES / name, environment={}))
        found[name] = [each.path for each in raised.value.mistakes]
    assert found == {
        "orders.toml": ["sinks.latest", "sinks.mail", "sources.customers.on_new_version"],
        "revenue.toml": ["dead_letters", "sinks.last_hour", "transforms.last_hour.emit"],
        "import.yaml": ["sources.files.on_poison", "sources.legacy"],
        "delta.toml": ["sinks.latest.mode"],
    }


def test_names_of_datasets_are_unique(tmp_path: Path) -> None:
    found = mistakes_of(tmp_path, ORDERS + LAKE.replace("sinks.lake", "sinks.orders_rows") + LETTERS)
    assert list(found) == ["sinks.orders_rows"]


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    project = exported(tmp_path, ORDERS + LAKE + LETTERS)
    project.write(tmp_path / "new" / "project")
    assert (tmp_path / "new" / "project" / MODULE).read_text(encoding="utf-8") == project.files[MODULE]
    with pytest.raises(PipelineError, match="choose a new folder"):
        project.write(tmp_path / "new" / "project")
