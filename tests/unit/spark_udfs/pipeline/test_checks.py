"""Validation of pipeline files."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.spark_udfs.pipeline.checks.load import check
from headgate.spark_udfs.pipeline.document import parse_toml
from headgate.spark_udfs.pipeline.errors import Mistake, PipelineMistakes
from headgate.spark_udfs.pipeline.model import Database, Mode, Pipeline, Watermark, WindowTransform
from headgate.spark_udfs.pipeline.sinks.dead_letter_topic import DeadLetterTopicSink
from headgate.spark_udfs.pipeline.sinks.jdbc import JdbcSink
from headgate.spark_udfs.pipeline.sinks.kinds import DEAD_LETTER_SINKS, SINKS
from headgate.spark_udfs.pipeline.sinks.topic import TopicSink
from headgate.spark_udfs.pipeline.sources.jdbc import JdbcSource
from headgate.spark_udfs.pipeline.sources.kinds import SOURCES
from headgate.spark_udfs.pipeline.sources.topic import TopicSource
from headgate.spark_udfs.spec.policy import OnPoison

HERE = Path("/pipelines")

GOOD = """
checkpoint = "state"
trigger = "2 seconds"
[kafka]
bootstrap.servers = "k:9092"
"security.protocol" = "SSL"
[registry]
url = "http://r:8081"
[sources.orders]
type = "topic"
watermark = { column = "at", delay = "10m" }
[sources.customers]
type = "topic"
topic = "crm.customers"
read = "table"
[transforms.named]
type = "sql"
sql = "SELECT o.*, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id"
[transforms.revenue]
type = "window"
from = "named"
window = "tumbling"
time = "at"
size = "5 minutes"
group_by = ["name"]
select = { orders = "count(*)" }
[sinks.lake]
type = "parquet"
from = "named"
path = "lake"
[sinks.report]
type = "jdbc"
from = "revenue"
url = "jdbc:postgresql://ada:secret@db/reports"
table = "revenue"
mode = "upsert"
keys = ["window_start", "name"]
[dead_letters]
type = "topic"
topic = "orders.dead"
"""


def pipeline(text: str, environment: dict[str, str] | None = None) -> Pipeline:
    return check(parse_toml(text, "p.toml", HERE, environment or {}), environment or {})


def mistakes(text: str) -> list[str]:
    with pytest.raises(PipelineMistakes) as caught:
        pipeline(text)
    return [each.text("p.toml") for each in caught.value.mistakes]


def test_a_complete_pipeline_is_loaded() -> None:
    found = pipeline(GOOD)
    assert (found.name, found.checkpoint, found.trigger_seconds) == ("p", "/pipelines/state", 2.0)
    assert found.kafka == {"kafka.bootstrap.servers": "k:9092", "kafka.security.protocol": "SSL"}
    assert found.registry == {"registry.url": "http://r:8081"}
    orders, customers = found.sources["orders"], found.sources["customers"]
    assert isinstance(orders, TopicSource)
    assert (orders.topic, orders.subject, orders.watermark) == ("orders", "orders-value", Watermark("at", "10 minutes"))
    assert isinstance(customers, TopicSource)
    assert (customers.topic, customers.subject) == ("crm.customers", "crm.customers-value")
    assert found.transforms["named"].inputs == ("orders", "customers")
    assert isinstance(found.transforms["revenue"], WindowTransform)
    report = found.sinks["report"]
    assert isinstance(report, JdbcSink)
    assert report.database == Database("postgresql://db/reports", "ada", "secret")
    assert "secret" not in repr(report)
    assert (report.mode, report.on_refused) == (Mode.UPSERT, OnPoison.DEAD_LETTER)
    assert found.dead_letters == DeadLetterTopicSink("dead_letters", "", "orders.dead")


def test_addresses_default_to_environment_variables() -> None:
    text = GOOD.replace('bootstrap.servers = "k:9092"\n', "").replace('url = "http://r:8081"\n', "")
    environment = {"HEADGATE_BOOTSTRAP_SERVER": "e:1", "HEADGATE_REGISTRY_URL": "http://e:2"}
    found = pipeline(text, environment)
    assert (found.kafka["kafka.bootstrap.servers"], found.registry["registry.url"]) == ("e:1", "http://e:2")
    assert pipeline(text).kafka["kafka.bootstrap.servers"] == "127.0.0.1:9092"


def test_all_mistakes_are_reported_together_with_lines_and_hints() -> None:
    text = """
checkpint = "state"
trigger = "often"
[sources.orders]
type = "topik"
[sources.clicks]
type = "topic"
wattermark = 1
starting_offsets = "begin"
[transforms.x]
type = "sql"
sql = "SELECT * FROM nowhere"
[sinks.lake]
type = "parquet"
from = "ordrs"
"""
    reported = mistakes(text)
    for expected in (
        "p.toml:2: checkpint: unknown key; did you mean checkpoint?",
        "p.toml: checkpoint: is required",
        "p.toml:3: trigger: expected a duration such as '10 minutes' or '30s', not 'often'",
        "p.toml:5: sources.orders.type: 'topik' is not one of topic, files, jdbc; did you mean topic?",
        "p.toml:8: sources.clicks.wattermark: unknown key; did you mean watermark?",
        "p.toml:9: sources.clicks.starting_offsets: expected earliest, latest or offsets",
        "p.toml:12: transforms.x.sql: reads no source",
        "p.toml:15: sinks.lake.from: ordrs is neither a source nor a transform; did you mean orders?",
        "p.toml:13: sinks.lake.path: is required: the folder",
        "p.toml:6: sources.clicks: unreadable rows have no destination",
    ):
        assert any(each.startswith(expected) for each in reported), f"{expected}\n\n" + "\n".join(reported)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('trigger = "2 seconds"', "trigger = 2", "expected a string, not 2"),
        ('type = "topic"\nwatermark', 'type = "topic"\nversion = 1\nschema_id = 2\nwatermark', "mutually exclusive"),
        ('type = "topic"\nwatermark', 'type = "topic"\nversion = true\nwatermark', "expected an integer from 1"),
        ('type = "topic"\nwatermark', 'type = "topic"\nschema = "{"\nwatermark', "is not an Avro schema"),
        ('type = "topic"\nwatermark', 'type = "topic"\nschema_file = "no.avsc"\nwatermark', "cannot read no.avsc"),
        ('type = "topic"\nwatermark', 'type = "topic"\nkey = ["id"]\nwatermark', 'requires read = "table"'),
        (
            'type = "topic"\nwatermark',
            'type = "topic"\ndecode = false\nfields = ["a"]\nwatermark',
            "has no effect with decode = false",
        ),
        (
            'type = "topic"\nwatermark',
            'type = "topic"\noptions = { subscribe = "x" }\nwatermark',
            "use the key topic instead",
        ),
        ('topic = "crm.customers"', 'topic = "crm customers"', "is not a valid topic name"),
        ('url = "http://r:8081"', 'ulr = "http://r:8081"', "registry.ulr: unknown key; did you mean url?"),
        ('read = "table"', 'read = "table"\ndecode = false', "the values of a table must be decoded"),
        ('read = "table"', 'read = "tabel"', "'tabel' is not one of stream, table; did you mean table?"),
        ('size = "5 minutes"', 'gap = "5 minutes"', "is for session windows; this window is tumbling"),
        ('size = "5 minutes"', 'size = "soon"', "a duration such as"),
        ('select = { orders = "count(*)" }', "", "is required: the aggregates"),
        ('select = { orders = "count(*)" }', 'select = { "a b" = "count(*)" }', "a column name contains"),
        ('window = "tumbling"', 'window = "hopping"', "slide: is required: the interval between window starts"),
        ('window = "tumbling"', "", "is required: one of tumbling, hopping, session"),
        ('window = "tumbling"', 'window = "hopping"\nslide = "6 minutes"', "6 minutes is longer than the window"),
        ('window = "tumbling"', 'window = "hopping"\nslide = "1 ms"', "in more than 2,000 windows of 5 minutes"),
        ('size = "5 minutes"', 'size = "0 minutes"', "size: must be longer than zero"),
        ("[sources.customers]", "[sources.Orders]", "conflicts with orders: SQL names are case-insensitive"),
        ('path = "lake"', 'path = "./state/lake"', "sinks.lake.path: is inside the checkpoint folder"),
        ('keys = ["window_start", "name"]', "", "keys: is required"),
        ('keys = ["window_start", "name"]', 'keys = ["a", "a"]', "contains a twice"),
        ('mode = "upsert"', 'mode = "replace"', "replace requires a table, and revenue is a stream"),
        ("jdbc:postgresql://ada:secret@db/reports", "mysql://db/x", "is not a supported database"),
        ("jdbc:postgresql://ada:secret@db/reports", "sqlite:", "does not name a database"),
        ('[dead_letters]\ntype = "topic"\ntopic = "orders.dead"', "", "have no destination"),
        ('trigger = "2 seconds"', 'on_poison = "NULL"', "'NULL' is not one of DEAD_LETTER, DROP, FAIL"),
        ('topic = "orders.dead"', 'topic = "orders"', "is the topic of the source orders: an endless loop"),
        ("SELECT o.*, c.name FROM", "DROP TABLE x --", "expected a SELECT"),
        ("[sinks.lake]", "[sinks.9lake]", "does not start with a digit"),
        ("[transforms.named]", "[transforms.orders]", "is the name of a source already"),
        ("FROM orders o", "FROM revenue o", "reads its own output: named ← revenue ← named"),
        ("watermark = { column", "watermark = { colum", "did you mean column?"),
        (', delay = "10m" }', " }", "delay: is required: how late rows may arrive"),
        ('from = "named"\npath', "path", "from: is required"),
    ],
)
def test_a_mistake_describes_the_value_and_the_allowed_values(old: str, new: str, message: str) -> None:
    assert old in GOOD
    reported = mistakes(GOOD.replace(old, new, 1))
    assert any(message in each for each in reported), "\n".join(reported)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"SSL"', '"SASL_SSL"', "p.toml:4: kafka.sasl.mechanism: required with SASL_SSL: one of PLAIN"),
        ('"SSL"', '"SSL"\ngroup.id = "g"', "p.toml:7: kafka.group.id: this source reads without a consumer group"),
        ('"SSL"', '"SSL"\nisolation.level = "read_committed"', "p.toml:7: kafka.isolation.level: there is no such"),
        ('"k:9092"', '"k"', "p.toml:5: kafka.bootstrap.servers: 'k' is not host:port"),
        (
            '"crm.customers"',
            '"c"\noptions = { minPartition = 3 }',
            "sources.customers.options.minPartition: there is no",
        ),
        ('"crm.customers"', '"c"\noptions = { flat = true }', "sources.customers.options.flat: is set by the pipeline"),
        (
            '"crm.customers"',
            '"c"\noptions.version = 2',
            "p.toml:15: sources.customers.options.version: use the key version",
        ),
        (
            "watermark =",
            "starting_offsets = { orders = 5 }\nwatermark =",
            "p.toml:11: sources.orders.starting_offsets:",
        ),
        ('"orders.dead"', '"d"\noptions = { "kafka.acks" = 1 }', "dead_letters.options.kafka.acks: records are"),
    ],
)
def test_options_of_topics_are_checked(old: str, new: str, message: str) -> None:
    assert old in GOOD
    reported = mistakes(GOOD.replace(old, new, 1))
    assert len(reported) == 1
    assert message in reported[0]


def test_a_folder_belongs_to_one_sink() -> None:
    """Both sinks use the same batch names, so the second would skip its batches."""
    second = '[sinks.more]\ntype = "parquet"\nfrom = "orders"\npath = "lake/"\n'
    assert mistakes(GOOD + second) == [
        "p.toml:44: sinks.more.path: is the folder of sinks.lake: use separate folders, or combine the rows in a "
        "transform (UNION ALL)"
    ]
    letters = GOOD.replace('type = "topic"\ntopic = "orders.dead"', 'type = "parquet"\npath = "lake"')
    assert any("sinks.lake.path: is the folder of dead_letters" in each for each in mistakes(letters))
    # Delta distinguishes its writers.
    pipeline((GOOD + second).replace('"parquet"', '"delta"'))


def test_a_delta_table_has_a_path_or_a_name() -> None:
    named = '[sinks.more]\ntype = "delta"\nfrom = "orders"\n'
    sink = pipeline(GOOD + named + 'table = "lake.shop.orders"\n').sinks["more"]
    assert sink.describe()[0] == "Delta lake.shop.orders, append"
    assert sink.folder is None
    for keys, problem in {
        'table = "a.b.c.d"': "is not a table name such as catalog.schema.table",
        'table = "a..c"': "is not a table name such as catalog.schema.table",
        'table = "a.b"\npath = "lake/"': "path and table are mutually exclusive",
        "": "sinks.more",
    }.items():
        (reported,) = mistakes(f"{GOOD}{named}{keys}\n")
        assert problem in reported


def test_a_missing_checkpoint_is_one_mistake() -> None:
    assert len(mistakes(GOOD.replace('checkpoint = "state"', ""))) == 1


def test_a_mistake_does_not_contain_credentials() -> None:
    reported = mistakes(GOOD.replace("jdbc:postgresql://ada:secret@db/reports", "mysql://ada:secret@db/x"))
    assert all("secret" not in each for each in reported)


def test_windows_and_joins_of_streams_need_watermarks() -> None:
    text = GOOD.replace('watermark = { column = "at", delay = "10m" }\n', "")
    assert any("transforms.revenue.watermark: is required" in each for each in mistakes(text))
    join = """
[transforms.paid]
type = "join"
left = "orders"
right = "payments"
on = "orders.id = payments.id"
select = ["orders.*"]
[sources.payments]
type = "topic"
[sinks.paid]
type = "console"
from = "paid"
"""
    reported = mistakes(GOOD + join)
    assert any("transforms.paid.right: payments has no watermark" in each for each in reported)
    assert not any("transforms.paid.left" in each for each in reported)


def test_a_table_can_neither_be_appended_nor_sent_to_a_topic() -> None:
    table = '[sinks.t]\ntype = "parquet"\nfrom = "customers"\npath = "t"\n'
    assert any("is a table, and append would write it repeatedly" in each for each in mistakes(GOOD + table))
    topic = '[sinks.t]\ntype = "topic"\nfrom = "customers"\ntopic = "t"\n'
    assert any('use its source with read = "stream"' in each for each in mistakes(GOOD + topic))
    pipeline(GOOD + table.replace('path = "t"', 'path = "t"\nmode = "replace"'))


def test_windows_that_emit_changes_require_upsert() -> None:
    text = GOOD.replace('select = { orders = "count(*)" }', 'select = { orders = "count(*)" }\nemit = "changes"')
    pipeline(text)
    reported = mistakes(text + '[sinks.w]\ntype = "parquet"\nfrom = "revenue"\npath = "w"\n')
    assert any("emits windows again when they change" in each for each in reported)


def test_files_and_databases_are_loaded_as_sources() -> None:
    text = """
checkpoint = "s3a://bucket/state"
[sources.people]
type = "files"
path = "in/*.csv"
schema = "id BIGINT"
[sources.old]
type = "jdbc"
url = "sqlite:old.db"
table = 'odd"name'
incremental = "id"
[sinks.people]
type = "topic"
from = "people"
topic = "people"
key = "id"
[sinks.old]
type = "topic"
from = "old"
topic = "old"
schema = '{"type": "record", "name": "R", "fields": []}'
[dead_letters]
type = "jdbc"
url = "sqlite:dead.db"
"""
    found = pipeline(text)
    assert found.checkpoint == "s3a://bucket/state"
    old = found.sources["old"]
    assert isinstance(old, JdbcSource)
    assert (old.database.url, old.query) == ("sqlite:/pipelines/old.db", 'SELECT * FROM "odd""name"')
    sink = found.sinks["people"]
    assert isinstance(sink, TopicSink)
    assert (sink.subject, sink.on_refused) == ("people-value", OnPoison.DEAD_LETTER)
    assert isinstance(found.dead_letters, JdbcSink)


def test_a_sqlite_file_cannot_be_read_in_one_pass_and_written() -> None:
    text = """
checkpoint = "s"
[sources.old]
type = "jdbc"
url = "sqlite:a.db"
table = "t"
[sinks.new]
type = "jdbc"
from = "old"
url = "sqlite:a.db"
table = "u"
on_refused = "FAIL"
"""
    assert any("new writes to the same SQLite file" in each for each in mistakes(text))
    pipeline(text.replace('table = "t"', 'table = "t"\nincremental = "id"'))


def test_every_kind_of_source_and_sink_is_documented() -> None:
    page = (Path(__file__).resolve().parents[4] / "docs" / "pipelines.md").read_text(encoding="utf-8")
    assert [kind for kind in SOURCES if f'### `type = "{kind}"`' not in page] == []
    assert [kind for kind in SINKS if f"\n| `{kind}` |" not in page] == []
    letters = page[page.index("## Dead letters") : page.index("## Execution")]
    assert [kind for kind in DEAD_LETTER_SINKS if f"`{kind}`" not in letters] == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["topic", "sql", "orders", "1s"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("name", "checkpoint", "trigger", "kafka", "registry", "spark", "sources", "transforms", "sinks", "dead_letters")


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), JSON | st.dictionaries(st.sampled_from(["orders", "a"]), JSON)))
def test_any_document_is_a_pipeline_or_a_list_of_mistakes(values: dict[str, object]) -> None:
    from headgate.spark_udfs.pipeline.document import Document

    reported: tuple[Mistake, ...] | None = None
    try:
        check(Document("p.toml", HERE, values), {})
    except PipelineMistakes as caught:
        reported = caught.mistakes
    assert reported is None or len(reported) > 0


def test_policies_at_the_top_of_the_file_are_defaults_of_the_sources() -> None:
    text = GOOD.replace('trigger = "2 seconds"', 'on_new_version = "FAIL"\non_registry_down = "FAIL"')
    text = text.replace('read = "table"', 'read = "table"\non_registry_down = "DEAD_LETTER"')
    found = pipeline(text)
    sources = [found.sources[name] for name in ("orders", "customers")]
    assert [isinstance(source, TopicSource) and source.on_new_version for source in sources] == ["FAIL", "FAIL"]
    assert [isinstance(source, TopicSource) and source.on_registry_down for source in sources] == [
        "FAIL",
        "DEAD_LETTER",
    ]
