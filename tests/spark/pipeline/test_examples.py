"""The pipelines of examples/, run with the command line in the shared session."""

import asyncio
import json
import urllib.request
from pathlib import Path
from typing import Any

import psycopg
import pytest

from examples.pipelines.fill import ORDERS, POISON, fill, make_legacy_database
from headgate.gateway.cli.app import run
from headgate.serdes import Deserializer, RegistryClient
from headgate.spark_udfs.pipeline.__main__ import main
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.ports import free_port
from tests.live.postgresql import PostgresqlServer
from tests.spark.pipeline.conftest import Place, sqlite_rows

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "pipelines"


@pytest.fixture(scope="module")
def filled(broker: HeadgateBroker, registry: HeadgateRegistry) -> None:
    asyncio.run(fill(broker.address, registry.url))


@pytest.fixture
def out(place: Place, filled: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OUT", str(place.folder))
    monkeypatch.setenv("HEADGATE_BOOTSTRAP_SERVER", place.broker)
    monkeypatch.setenv("HEADGATE_REGISTRY_URL", place.registry)
    monkeypatch.chdir(place.folder)
    return place.folder


def test_the_orders_example_writes_every_sink(place: Place, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = out / "metrics.json"
    arguments = ["pipeline", "run", "--once", "--json", "--metrics-json", str(metrics)]
    assert run([*arguments, str(EXAMPLES / "orders.toml")]) == 0
    captured = capsys.readouterr()
    done = json.loads(captured.out)
    orders = done["sources"]["orders"]
    assert (orders["read"], orders["good"], orders["poison"]) == (len(ORDERS) + len(POISON), len(ORDERS), len(POISON))
    assert orders["poison_by_reason"] == {"BAD_MAGIC": 1, "NULL": 1, "TOO_SHORT": 1, "UNKNOWN_SCHEMA": 1}
    assert json.loads(metrics.read_text())["sinks"] == done["sinks"]
    assert "4 poison (BAD_MAGIC 1, NULL 1, TOO_SHORT 1, UNKNOWN_SCHEMA 1)" in captured.err
    named = {row["id"]: (row["full_name"], row["country"]) for row in place.parquet("lake/orders")}
    # The alias maps the old field name, old versions get the default country, and alan was deleted.
    assert named == {
        1: ("Ada Lovelace", "GB"),
        2: (None, None),
        3: ("Ada Lovelace", "GB"),
        4: ("Mary Jackson", "US"),
        5: (None, None),
    }
    latest = dict(sqlite_rows(out / "shop.db", "SELECT customer, amount FROM latest_order"))
    assert latest["ada"] == "120.50"
    letters = "".join(file.read_text() for file in (out / "mail").iterdir())
    assert sorted(letters.splitlines()) == ["Ada Lovelace has ordered for 120.50", "None has ordered for 250.00"]


def test_the_revenue_example_computes_windows_and_joins(place: Place, out: Path) -> None:
    # Without the headgate command, as with spark-submit, and with a scrape of the metrics.
    port = free_port()
    seen: list[bytes] = []

    def scrape() -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            seen.append(answer.read())

    from headgate.spark_udfs.pipeline import run as running

    original = running._Execution._run_once

    def run_and_scrape(self: Any) -> None:
        original(self)
        scrape()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running._Execution, "_run_once", run_and_scrape)
        code = main(["--once", "--metrics-listen", f"127.0.0.1:{port}", str(EXAMPLES / "revenue.toml")])
    assert code == 0
    assert b'headgate_pipeline_rows_poison_total{pipeline="revenue",reason="TOO_SHORT",source="orders"} 1.0' in seen[0]
    windows = {
        row["window_start"].strftime("%H:%M"): (row["orders"], str(row["revenue"]))
        for row in place.parquet("per_ten_minutes")
    }
    assert windows == {"12:00": (2, "269.90"), "12:10": (1, "120.50"), "12:50": (1, "5.00")}
    hours = dict(sqlite_rows(out / "shop.db", "SELECT substr(window_start, 12, 5), orders FROM last_hour"))
    assert (hours["12:00"], hours["11:30"], hours["12:30"]) == (4, 3, 1)
    assert sorted((row["customer"], row["orders"]) for row in place.parquet("visits")) == [
        ("ada", 2),
        ("alan", 1),
        ("mary", 1),
    ]
    assert [row["id"] for row in place.parquet("paid")] == [1]
    reasons = sqlite_rows(out / "shop.db", "SELECT reason FROM dead_letters ORDER BY reason")
    assert [row[0] for row in reasons] == ["BAD_MAGIC", "NULL", "TOO_SHORT", "UNKNOWN_SCHEMA"]


def test_the_warehouse_example_writes_postgresql(
    out: Path, postgresql: PostgresqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAREHOUSE_URL", postgresql.url())
    assert run(["pipeline", "run", "--once", str(EXAMPLES / "warehouse.toml")]) == 0
    with psycopg.connect(postgresql.url(), user="postgres") as connection:
        orders = connection.execute("SELECT id, amount, ordered_at FROM orders ORDER BY id").fetchall()
        customers = connection.execute("SELECT id, full_name, country FROM customers ORDER BY id").fetchall()
        letters = connection.execute("SELECT count(*) FROM dead_letters").fetchall()
    assert [(row[0], str(row[1])) for row in orders][:2] == [(1, "19.90"), (2, "250.00")]
    assert orders[0][2] == ORDERS[0]["ordered_at"]
    assert ("ada", "Ada Lovelace", "GB") in customers
    assert letters == [(len(POISON),)]


def test_the_import_example_reads_files_and_a_database(
    place: Place, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_legacy_database(out / "legacy.db")
    assert run(["pipeline", "run", "--once", "--json", str(EXAMPLES / "import.yaml")]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["sources"]["files"]["good"], done["sources"]["files"]["poison"]) == (2, 1)
    with RegistryClient(place.registry) as client:
        deserializer = Deserializer(client)
        records = place.all_records("customers")
        values: list[Any] = [deserializer.deserialize(each.value()) for each in records if each.value() is not None]
    found = {value["id"]: value for value in values if "full_name" in value}
    assert found["grace"] == {"id": "grace", "full_name": "Grace Hopper", "country": "US"}
    assert found["legacy-2"] == {"id": "legacy-2", "full_name": "Barbara Liskov", "country": "US"}


def test_a_plan_shows_steps_columns_and_guarantees_and_writes_nothing(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["pipeline", "plan", str(EXAMPLES / "orders.toml")]) == 0
    text = capsys.readouterr().out
    for line in (
        "source customers",
        "  topic customers, AVRO decoded with customers-value version 3",
        "transform named ← orders, customers",
        "    amount      decimal(9,2)",
        "sink lake ← named",
        "  exactly once",
        "  orders: read and decoded once → sinks lake, latest, large_orders, mail",
    ):
        assert line in text, text
    assert run(["pipeline", "plan", "--json", str(EXAMPLES / "delta.toml")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {step["name"]: step["summary"] for step in document["steps"]}["latest"].endswith("upsert by customer")
    assert run(["pipeline", "plan", "--json", str(EXAMPLES / "revenue.toml")]) == 0
    listed = json.loads(capsys.readouterr().out)["steps"]
    steps = {step["name"]: step for step in listed if step["kind"] == "transform"}
    assert steps["visits"]["notes"] == ["stateful: keeps rows of several micro-batches"]
    assert [each["name"] for each in steps["visits"]["columns"]] == ["window_start", "window_end", "customer", "orders"]
    assert list(out.iterdir()) == []


def test_exit_codes_distinguish_the_kinds_of_failure(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = out / "bad.toml"
    file.write_text('[sources.orders]\ntype = "topc"\n')
    assert run(["pipeline", "plan", str(file)]) == 2
    reported = capsys.readouterr().err
    assert "bad.toml:2: sources.orders.type: 'topc' is not one of topic, files, jdbc; did you mean topic?" in reported
    assert main([str(file)]) == 2
    orders = str(EXAMPLES / "orders.toml")
    assert (
        run(["pipeline", "plan", "--set", "registry.url=http://127.0.0.1:1", "--set", "registry.retries=0", orders])
        == 4
    )
    assert run(["pipeline", "plan", "--set", "sources.orders.subject=nobody", orders]) == 1
    assert "nobody" in capsys.readouterr().err
    assert run(["pipeline", "plan", "--set", "oops", orders]) == 2
