"""`headgate topic export` and `import`: every format, interruptions, and folders that do not fit."""

import json
from collections.abc import Iterator
from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest

from headgate.serdes import Reason
from tests.clients.cli.conftest import Cli
from tests.live.headgate_registry import HeadgateRegistry

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
}
COUNT = 60


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def environment(registry: str) -> dict[str, str]:
    return {"HEADGATE_REGISTRY_URL": registry}


def fill(cli: Cli, topic: str, environment: dict[str, str]) -> None:
    """Good records with keys, headers and times, a tombstone, and poison, in three partitions."""
    schema = cli.folder / "order.avsc"
    schema.write_text(json.dumps(ORDER))
    cli("topic", "create", topic, "-p", "3")
    lines = "".join(
        json.dumps(
            {
                "key": f"k{number}",
                "value": {"id": number, "note": {"string": "ü" * number} if number % 2 else None},
                "headers": [{"name": "h", "value": str(number)}],
                "partition": number % 3,
                "timestamp": 1_790_000_000_000 + number,
            }
        )
        + "\n"
        for number in range(COUNT)
    )
    cli("produce", topic, "-J", "--value-schema", str(schema), stdin=lines.encode(), **environment)
    cli("produce", topic, "--base64", "-p", "1", stdin=b"AAAAAAH/////////////\n")
    cli("produce", topic, "-Z", "-k", "gone", "-p", "2", "-v", "")


def contents(cli: Cli, topic: str) -> list[object]:
    """All records without their offsets, as bytes."""
    records = [json.loads(line) for line in cli("consume", topic, "-e", "--raw", "--json").lines]
    return sorted(
        (
            record["partition"],
            record["offset"],
            record["timestamp"],
            record["key"],
            record.get("value", record.get("value_base64")) or "",
            json.dumps(record["headers"]),
        )
        for record in records
    )


def exported(cli: Cli, topic: str, folder: Path, *options: str, **environment: str) -> dict[str, int]:
    found: dict[str, int] = json.loads(
        cli("topic", "export", topic, str(folder), "--json", *options, **environment).out
    )
    return found


@pytest.mark.parametrize(
    "options", [["-f", "ndjson"], ["-f", "ndjson", "--raw"], ["-f", "parquet", "--raw"], ["-f", "avro", "--raw"]]
)
def test_an_import_restores_the_topic(
    cli: Cli, environment: dict[str, str], tmp_path: Path, options: list[str]
) -> None:
    source = f"tr-{'-'.join(options).replace('--', '').replace('-f-', '')}"
    fill(cli, source, environment)
    counts = exported(cli, source, tmp_path / "e", *options, **environment)
    assert counts["records"] == COUNT + 2
    assert counts["poison"] == (0 if "--raw" in options else 1)
    cli("topic", "create", f"{source}-copy", "-p", "3")
    sent = json.loads(cli("topic", "import", f"{source}-copy", str(tmp_path / "e"), "--json", **environment).out)
    assert sent["sent"] == COUNT + 2
    assert contents(cli, f"{source}-copy") == contents(cli, source)
    again = json.loads(cli("topic", "import", f"{source}-copy", str(tmp_path / "e"), "--json", **environment).out)
    assert again["sent"] == 0


def test_decoded_files_contain_good_records_and_poison(cli: Cli, environment: dict[str, str], tmp_path: Path) -> None:
    fill(cli, "tr-decoded", environment)
    counts = exported(cli, "tr-decoded", tmp_path / "parquet", "-f", "parquet", **environment)
    # A tombstone has no value to decode.
    assert (counts["records"], counts["poison"]) == (COUNT + 2, 2)
    rows = [row for path in sorted((tmp_path / "parquet").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    assert sorted(row["value"]["id"] for row in rows if row["reason"] is None) == list(range(COUNT))
    assert sorted(row["reason"] for row in rows if row["reason"]) == [Reason.CORRUPT.name, Reason.NULL.name]
    counts = exported(cli, "tr-decoded", tmp_path / "avro", "-f", "avro", **environment)
    assert counts == {"topic": "tr-decoded", "files": 3, "records": COUNT + 2, "poison": 2}
    found = []
    for path in (tmp_path / "avro").glob("*.avro"):
        with path.open("rb") as file:
            found += list(fastavro.reader(file))
    assert sorted(row["value"]["id"] for row in found if row["reason"] is None) == list(range(COUNT))  # type: ignore[index, call-overload]
    done = cli("topic", "import", "tr-decoded", str(tmp_path / "avro"), code=1, **environment)
    assert "contains decoded values" in done.err


def test_a_second_export_adds_only_new_records(cli: Cli, environment: dict[str, str], tmp_path: Path) -> None:
    fill(cli, "tr-again", environment)
    first = exported(cli, "tr-again", tmp_path / "e", **environment)
    assert exported(cli, "tr-again", tmp_path / "e", **environment) == first
    # An interrupted export leaves a partial file, which the next one replaces.
    (tmp_path / "e" / "tr-again-0-00000000000000000020.ndjson.part").write_bytes(b"half a li")
    cli("produce", "tr-again", "-p", "0", "-v", "late")
    third = exported(cli, "tr-again", tmp_path / "e", **environment)
    assert third["records"] == first["records"] + 1
    assert sorted(path.suffix for path in (tmp_path / "e").iterdir()) == [".json"] + [".ndjson"] * 4


def test_folders_that_do_not_fit_are_rejected(cli: Cli, environment: dict[str, str], tmp_path: Path) -> None:
    fill(cli, "tr-folders", environment)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious").write_text("x")
    done = cli("topic", "export", "tr-folders", str(tmp_path / "other"), code=1, **environment)
    assert "is not empty and contains no export" in done.err
    exported(cli, "tr-folders", tmp_path / "e", **environment)
    done = cli("topic", "export", "tr-folders", str(tmp_path / "e"), "--raw", code=1, **environment)
    assert "contains an export of topic tr-folders as ndjson" in done.err
    done = cli("topic", "import", "tr-folders", str(tmp_path / "nothing"), code=1)
    assert "contains no export" in done.err
    cli("topic", "create", "tr-narrow", "-p", "1")
    done = cli("topic", "import", "tr-narrow", str(tmp_path / "e"), code=1, **environment)
    assert "has 1 partitions and the export 3" in done.err
    cli("topic", "import", "tr-narrow", str(tmp_path / "e"), "--no-keep-partitions", **environment)
    assert len(contents(cli, "tr-narrow")) == COUNT + 2
    # A manifest that names a file outside the folder reads nothing.
    manifest = tmp_path / "e" / "headgate-export.json"
    manifest.write_text(manifest.read_text().replace('"tr-folders-0-', '"../tr-folders-0-', 1))
    done = cli("topic", "import", "tr-narrow", str(tmp_path / "e"), code=1, **environment)
    assert "is not a file name" in done.err


def test_a_damaged_line_names_its_place_and_the_import_continues_there(
    cli: Cli, environment: dict[str, str], tmp_path: Path
) -> None:
    fill(cli, "tr-line", environment)
    exported(cli, "tr-line", tmp_path / "e", **environment)
    (path,) = (tmp_path / "e").glob("tr-line-1-*.ndjson")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], b"oops\n", *lines[6:]]))
    cli("topic", "create", "tr-line-copy", "-p", "3")
    done = cli("topic", "import", "tr-line-copy", str(tmp_path / "e"), code=1, **environment)
    assert f"{path.name} line 6 cannot be sent" in done.err
    path.write_bytes(b"".join(lines))
    cli("topic", "import", "tr-line-copy", str(tmp_path / "e"), **environment)
    assert contents(cli, "tr-line-copy") == contents(cli, "tr-line")
