"""`headgate topic export` and `import`: every format, interruptions, and folders that do not fit."""

import json
from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest

from headgate.serdes import Reason
from tests.clients.cli.conftest import Cli

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
}
COUNT = 60


def fill(cli: Cli, topic: str) -> None:
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
    cli("produce", topic, "-J", "--value-schema", str(schema), stdin=lines.encode())
    cli("produce", topic, "--base64", "-p", "1", stdin=b"AAAAAAH/////////////\n")
    cli("produce", topic, "-Z", "-k", "gone", "-p", "2", "-v", "")


def contents(cli: Cli, topic: str) -> list[tuple[object, ...]]:
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


def exported(cli: Cli, topic: str, folder: Path, *options: str) -> dict[str, int]:
    found: dict[str, int] = json.loads(cli("topic", "export", topic, str(folder), "--json", *options).out)
    return found


@pytest.mark.parametrize(
    "options", [["-f", "ndjson"], ["-f", "ndjson", "--raw"], ["-f", "parquet", "--raw"], ["-f", "avro", "--raw"]]
)
def test_an_import_restores_the_topic(schemas: Cli, tmp_path: Path, options: list[str]) -> None:
    source = f"tr-{'-'.join(options).replace('--', '').replace('-f-', '')}"
    fill(schemas, source)
    counts = exported(schemas, source, tmp_path / "e", *options)
    assert counts["records"] == COUNT + 2
    assert counts["poison"] == (0 if "--raw" in options else 1)
    schemas("topic", "create", f"{source}-copy", "-p", "3")
    sent = json.loads(schemas("topic", "import", f"{source}-copy", str(tmp_path / "e"), "--json").out)
    assert sent["sent"] == COUNT + 2
    assert contents(schemas, f"{source}-copy") == contents(schemas, source)
    again = json.loads(schemas("topic", "import", f"{source}-copy", str(tmp_path / "e"), "--json").out)
    assert again["sent"] == 0


def test_decoded_files_contain_good_records_and_poison(schemas: Cli, tmp_path: Path) -> None:
    fill(schemas, "tr-decoded")
    counts = exported(schemas, "tr-decoded", tmp_path / "parquet", "-f", "parquet")
    # A tombstone has no value to decode.
    assert (counts["records"], counts["poison"]) == (COUNT + 2, 2)
    rows = [row for path in sorted((tmp_path / "parquet").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]  # type: ignore[no-untyped-call]
    assert sorted(row["value"]["id"] for row in rows if row["reason"] is None) == list(range(COUNT))
    assert sorted(row["reason"] for row in rows if row["reason"]) == [Reason.CORRUPT.name, Reason.NULL.name]
    counts = exported(schemas, "tr-decoded", tmp_path / "avro", "-f", "avro")
    assert counts == {"topic": "tr-decoded", "files": 3, "records": COUNT + 2, "poison": 2}
    found = []
    for path in (tmp_path / "avro").glob("*.avro"):
        with path.open("rb") as file:
            found += list(fastavro.reader(file))
    assert sorted(row["value"]["id"] for row in found if row["reason"] is None) == list(range(COUNT))  # type: ignore[index, call-overload]
    done = schemas("topic", "import", "tr-decoded", str(tmp_path / "avro"), code=1)
    assert "contains decoded values" in done.err


def test_a_second_export_adds_only_new_records(schemas: Cli, tmp_path: Path) -> None:
    fill(schemas, "tr-again")
    first = exported(schemas, "tr-again", tmp_path / "e")
    assert exported(schemas, "tr-again", tmp_path / "e") == first
    # An interrupted export leaves a partial file, which the next one replaces.
    (tmp_path / "e" / "tr-again-0-00000000000000000020.ndjson.part").write_bytes(b"half a li")
    schemas("produce", "tr-again", "-p", "0", "-v", "late")
    third = exported(schemas, "tr-again", tmp_path / "e")
    assert third["records"] == first["records"] + 1
    assert sorted(path.suffix for path in (tmp_path / "e").iterdir()) == [".json"] + [".ndjson"] * 4


def test_folders_that_do_not_fit_are_rejected(schemas: Cli, tmp_path: Path) -> None:
    fill(schemas, "tr-folders")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious").write_text("x")
    done = schemas("topic", "export", "tr-folders", str(tmp_path / "other"), code=1)
    assert "is not empty and contains no export" in done.err
    exported(schemas, "tr-folders", tmp_path / "e")
    done = schemas("topic", "export", "tr-folders", str(tmp_path / "e"), "--raw", code=1)
    assert "contains an export of topic tr-folders as ndjson" in done.err
    done = schemas("topic", "import", "tr-folders", str(tmp_path / "nothing"), code=1)
    assert "contains no export" in done.err
    schemas("topic", "create", "tr-narrow", "-p", "1")
    done = schemas("topic", "import", "tr-narrow", str(tmp_path / "e"), code=1)
    assert "has 1 partitions and the export 3" in done.err
    schemas("topic", "import", "tr-narrow", str(tmp_path / "e"), "--no-keep-partitions")
    assert len(contents(schemas, "tr-narrow")) == COUNT + 2
    # A manifest that names a file outside the folder reads nothing.
    manifest = tmp_path / "e" / "headgate-export.json"
    manifest.write_text(manifest.read_text().replace('"tr-folders-0-', '"../tr-folders-0-', 1))
    done = schemas("topic", "import", "tr-narrow", str(tmp_path / "e"), code=1)
    assert "is not a file name" in done.err


def test_a_damaged_line_names_its_place_and_the_import_continues_there(schemas: Cli, tmp_path: Path) -> None:
    fill(schemas, "tr-line")
    exported(schemas, "tr-line", tmp_path / "e")
    (path,) = (tmp_path / "e").glob("tr-line-1-*.ndjson")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], b"oops\n", *lines[6:]]))
    schemas("topic", "create", "tr-line-copy", "-p", "3")
    done = schemas("topic", "import", "tr-line-copy", str(tmp_path / "e"), code=1)
    assert f"{path.name} line 6 cannot be sent" in done.err
    path.write_bytes(b"".join(lines))
    schemas("topic", "import", "tr-line-copy", str(tmp_path / "e"))
    assert contents(schemas, "tr-line-copy") == contents(schemas, "tr-line")
