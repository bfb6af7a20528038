"""`headgate produce` and `headgate consume` with registered schemas, against a live broker and registry."""

import base64
import json
import re
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest
from pyarrow import lib as pa

from tests.clients.cli.conftest import Cli
from tests.clients.cli.terminal import shown_lines

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
GOOD = [{"id": 1, "note": None}, {"id": 2, "note": {"string": "two\nlines"}}]
PERSON = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
PROTO = 'syntax = "proto3"; message Ping { string host = 1; int32 times = 2; }'


def lines(documents: list[object]) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


@pytest.fixture
def avro(cli: Cli) -> str:
    path = cli.folder / "order.avsc"
    path.write_text(json.dumps(ORDER))
    return str(path)


def test_avro_json_schema_and_protobuf_are_encoded_and_printed_as_json(schemas: Cli, avro: str, tmp_path: Path) -> None:
    schemas("produce", "sr-avro", "--value-schema", avro, stdin=lines(list(GOOD)))
    assert [json.loads(line) for line in schemas("consume", "sr-avro", "-e").lines] == GOOD

    (tmp_path / "person.json").write_text(json.dumps(PERSON))
    schemas("produce", "sr-json", "--value-schema", str(tmp_path / "person.json"), "-v", '{"name":"Ada"}')
    assert schemas("consume", "sr-json", "-e").out == b'{"name":"Ada"}\n'

    (tmp_path / "ping.proto").write_text(PROTO)
    schemas("produce", "sr-proto", "--value-schema", str(tmp_path / "ping.proto"), "-v", '{"host":"a"}')
    assert json.loads(schemas("consume", "sr-proto", "-e").out) == {"host": "a", "times": 0}


def test_keys_are_encoded_and_decoded_too(schemas: Cli, avro: str) -> None:
    schemas("produce", "sr-key", "--key-schema", avro, "-k", '{"id":7,"note":null}', "-v", "plain")
    assert schemas("consume", "sr-key", "-e", "-k", "-K", "|").out == b'{"id":7,"note":null}|plain\n'
    (row,) = [json.loads(line) for line in schemas("consume", "sr-key", "-e", "--json").lines]
    assert row["key"] == {"id": 7, "note": None}
    assert row["key_schema_id"] > 0
    assert row["value"] == "plain"
    assert "value_schema_id" not in row


def test_raw_prints_the_payload_unchanged(schemas: Cli, avro: str) -> None:
    schemas("produce", "sr-raw", "--value-schema", avro, stdin=lines(GOOD[:1]))
    raw = schemas("consume", "sr-raw", "-e", "--raw").out
    assert raw[:1] == b"\0"
    assert raw[5:] == b"\x02\x00\n"
    assert schemas("consume", "sr-raw", "-e", "-s", "value=hex").out == raw[:-1].hex().encode() + b"\n"
    assert schemas("consume", "sr-raw", "-e", "-f", "%S").out == b"7"


def test_json_lines_copy_decoded_records_and_poison_without_loss(schemas: Cli, avro: str) -> None:
    schemas("produce", "sr-from", "--value-schema", avro, stdin=lines([*GOOD, {"id": 3}]))
    poison = schemas("consume", "sr-from", "-n", "1", "--raw").out
    schemas("produce", "sr-from", "-J", stdin=json.dumps({"value_base64": b64(poison)}).encode())
    copied = schemas("consume", "sr-from", "-e", "--json", code=1).out
    schemas("produce", "sr-to", "-J", stdin=copied)
    before, after = (
        [base64_of(line) for line in schemas("consume", topic, "-e", "--json", "--base64").lines]
        for topic in ("sr-from", "sr-to")
    )
    assert after == before


def base64_of(line: str) -> str:
    return str(json.loads(line)["value_base64"])


def poisoned(schemas: Cli, topic: str, avro: str) -> list[bytes]:
    """Fill a topic: two good records around one of each kind of poison. Returns the bad payloads."""
    schemas("produce", topic, "--value-schema", avro, stdin=lines(GOOD[:1]))
    frame = schemas("consume", topic, "-n", "1", "--raw").out[:5]
    bad = [frame + b"\x02", frame + b"\x02\x00\xff", b"\x00\x00\x0f\xff\xff\x02\x00"]
    for payload in bad:
        schemas("produce", topic, "-J", stdin=json.dumps({"value_base64": b64(payload)}).encode())
    schemas("produce", topic, "--value-subject", f"{topic}-value", stdin=lines(GOOD[1:]))
    return bad


def b64(payload: bytes) -> str:
    return base64.b64encode(payload).decode()


def test_poison_is_reported_and_good_records_are_printed(schemas: Cli, avro: str) -> None:
    bad = poisoned(schemas, "sr-poison", avro)
    done = schemas("consume", "sr-poison", "-e", code=1)
    assert [json.loads(line) for line in done.lines] == GOOD
    assert "sr-poison-0 offset 1: the value is poison: TRUNCATED (schema" in done.err
    assert re.search(r"why: UNKNOWN_SCHEMA 1, TRUNCATED 1, TRAILING_BYTES 1", done.err)

    rows = [json.loads(line) for line in schemas("consume", "sr-poison", "-e", "--json", code=1).lines]
    assert [row.get("poison", {}).get("reason") for row in rows] == [
        None,
        "TRUNCATED",
        "TRAILING_BYTES",
        "UNKNOWN_SCHEMA",
        None,
    ]
    assert [row["value_base64"] for row in rows[1:4]] == [b64(payload) for payload in bad]


def test_poison_can_be_skipped_or_end_the_command(schemas: Cli, avro: str) -> None:
    poisoned(schemas, "sr-skip", avro)
    skipped = schemas("consume", "sr-skip", "-e", "--on-poison", "skip")
    assert [json.loads(line) for line in skipped.lines] == GOOD
    assert skipped.err == ""
    failed = schemas("consume", "sr-skip", "-e", "--on-poison", "fail", code=1)
    assert [json.loads(line) for line in failed.lines] == GOOD[:1]
    assert "offset 1: the value is poison: TRUNCATED" in failed.err


def test_a_group_that_fails_at_poison_reads_it_again(schemas: Cli, avro: str) -> None:
    poisoned(schemas, "sr-group", avro)
    arguments = ("consume", "sr-group", "-g", "sr-group-readers", "-e")
    first = schemas(*arguments, "--on-poison", "fail", code=1)
    again = schemas(*arguments, "--on-poison", "fail", code=1)
    assert [json.loads(line) for line in first.lines] == GOOD[:1]
    assert again.lines == []
    assert "offset 1: the value is poison" in again.err
    rest = schemas(*arguments, "--on-poison", "skip")
    assert [json.loads(line) for line in rest.lines] == GOOD[1:]


def test_a_group_moves_poison_to_the_dead_letter_topic_once(schemas: Cli, avro: str) -> None:
    bad = poisoned(schemas, "sr-dead", avro)
    arguments = ("consume", "sr-dead", "-g", "sr-dead-readers", "-e", "--on-poison", "dead-letter")
    assert [json.loads(line) for line in schemas(*arguments).lines] == GOOD
    assert schemas(*arguments).lines == []
    letters = [json.loads(line) for line in schemas("consume", "sr-dead.dead", "-e", "--json", "--base64").lines]
    assert sorted(letter["value_base64"] for letter in letters) == sorted(map(b64, bad))
    refused = schemas("consume", "sr-dead", "-e", "--on-poison", "dead-letter", code=2)
    assert "needs --group" in refused.err
    named = schemas(*arguments[:3], "sr-dead-others", *arguments[4:], "--dead-letter-suffix", "-poison")
    assert "(now in sr-dead-poison)" in named.err


def test_a_schema_can_be_chosen_for_payloads_without_an_id(schemas: Cli, avro: str) -> None:
    schemas("produce", "sr-body", "--value-schema", avro, stdin=lines(GOOD[:1]))
    (row,) = [json.loads(line) for line in schemas("consume", "sr-body", "-e", "--json").lines]
    schemas("produce", "sr-bare", "-J", stdin=json.dumps({"value_base64": b64(b"\x02\x00")}).encode())
    for chosen in (("--value-schema-id", str(row["value_schema_id"])), ("--value-subject", "sr-body-value")):
        assert json.loads(schemas("consume", "sr-bare", "-e", *chosen).out) == GOOD[0]
    # A separate interpreter: a forked process ends before it reports coroutines that were never awaited.
    interpreter = type(schemas)(schemas.address, schemas.folder)
    missing = interpreter("consume", "sr-bare", "-e", "--value-subject", "none-value", code=3)
    assert missing.err.startswith("error: there is no such schema")
    assert "never awaited" not in missing.err


def test_rules_are_ignored_on_request_only(schemas: Cli, registry: str) -> None:
    rule = {"name": "encryptNote", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "ENCRYPT", "tags": ["PII"]}
    body = {"schema": json.dumps(ORDER), "ruleSet": {"domainRules": [rule]}}
    assert httpx.post(f"{registry}/subjects/sr-rules-value/versions", json=body, timeout=30).status_code == 200
    schemas("topic", "create", "sr-rules")
    produce = ("produce", "sr-rules", "--value-subject", "sr-rules-value", "-v", '{"id":7,"note":null}')
    assert "encryptNote" in schemas(*produce, code=1).err
    assert schemas("consume", "sr-rules", "-e").out == b""
    schemas(*produce, "--rules", "ignore")
    assert "RULES_NOT_EXECUTED" in schemas("consume", "sr-rules", "-e", code=1).err
    assert schemas("consume", "sr-rules", "-e", "--rules", "ignore").out == b'{"id":7,"note":null}\n'


def test_rejected_lines_are_named_and_kept(schemas: Cli, avro: str, tmp_path: Path) -> None:
    given = lines([GOOD[0], {"id": "x", "note": None}, {"note": None}]) + b"not json\n" + lines(GOOD[1:])
    stopped = schemas("produce", "sr-lines", "--value-schema", avro, stdin=given, code=1)
    assert "line 2 cannot be sent" in stopped.err
    assert "id" in stopped.err
    kept = tmp_path / "rejected"
    done = schemas("produce", "sr-kept", "--value-schema", avro, "--dead-letter", str(kept), stdin=given, code=1)
    assert "3 of 5 records were rejected" in done.err
    assert [f"line {number} rejected" in done.err for number in range(1, 6)] == [False, True, True, True, False]
    assert kept.read_bytes() == b"".join(given.splitlines(keepends=True)[1:4])
    assert [json.loads(line) for line in schemas("consume", "sr-kept", "-e").lines] == GOOD


def test_a_registry_that_is_down_is_named(cli: Cli, schemas: Cli, avro: str) -> None:
    schemas("produce", "sr-down", "--value-schema", avro, stdin=lines(GOOD[:1]))
    down = cli("consume", "sr-down", "-e", "--registry", "http://127.0.0.1:1", code=1)
    assert "REGISTRY_UNAVAILABLE 1" in down.err
    written = cli("produce", "sr-down", "--value-subject", "x", "--registry", "http://127.0.0.1:1", "-v", "1", code=4)
    assert "the schema registry did not respond" in written.err


def test_logical_types_have_a_readable_form(schemas: Cli, tmp_path: Path) -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    (tmp_path / "sale.avsc").write_text(
        json.dumps({"type": "record", "name": "Sale", "fields": [{"name": "price", "type": price}]})
    )
    given = ("--value-schema", str(tmp_path / "sale.avsc"), "-v", '{"price":"9.99"}')
    schemas("produce", "sr-logical", "--logical", "native", *given)
    assert schemas("consume", "sr-logical", "-e", "--logical", "native").out == b'{"price":"9.99"}\n'
    assert json.loads(schemas("consume", "sr-logical", "-e").out) == {"price": "\x03\xe7"}


def test_csv_rows_are_encoded_with_the_types_of_the_schema(schemas: Cli, avro: str, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.csv"
    text = b'id,note,customer\n1,,ada\nx,bad,bob\n2,"two\nlines",eve\n'
    options = ("--from", "csv", "--value-schema", avro, "--key-column", "customer", "--dead-letter", str(rejects))
    run = schemas("produce", "sr-csv", *options, stdin=text, code=1)
    assert "line 3 rejected: column id: 'x' is not a whole number" in run.err
    assert rejects.read_bytes() == b"x,bad,bob\n"
    records = [json.loads(line) for line in schemas("consume", "sr-csv", "-e", "--json").lines]
    assert [(record["key"], record["value"]) for record in records] == [("ada", GOOD[0]), ("eve", GOOD[1])]


def test_a_csv_header_that_does_not_match_sends_nothing(schemas: Cli, avro: str) -> None:
    run = schemas("produce", "sr-header", "--from", "csv", "--value-schema", avro, stdin=b"id,colour\n1,red\n", code=1)
    assert "the header has a column 'colour'" in run.err
    assert schemas("consume", "sr-header", "-e").out == b""


def test_csv_needs_a_schema(schemas: Cli) -> None:
    run = schemas("produce", "sr-nothing", "--from", "csv", stdin=b"id\n1\n", code=2)
    assert "--from csv needs the schema of the value" in run.err


def test_parquet_rows_are_encoded_and_bad_rows_are_named(schemas: Cli, avro: str, tmp_path: Path) -> None:
    file, rejects = tmp_path / "orders.parquet", tmp_path / "rejects.json"
    ids = pa.array([1, None, 2], pa.int64())
    pq.write_table(pa.table({"id": ids, "note": [None, "no id", "two\nlines"]}), file)  # type: ignore[no-untyped-call]
    options = ("--from", "parquet", "--value-schema", avro, "--key-column", "id", "--dead-letter", str(rejects))
    run = schemas("produce", "sr-parquet", str(file), *options, code=1)
    assert re.search(r"row 2 rejected: .*id", run.err)
    assert json.loads(rejects.read_bytes()) == {"id": None, "note": "no id"}
    records = [json.loads(line) for line in schemas("consume", "sr-parquet", "-e", "--json").lines]
    assert [(record["key"], record["value"]) for record in records] == [("1", GOOD[0]), ("2", GOOD[1])]


def test_parquet_rows_for_json_schema_and_files_that_are_not_parquet(schemas: Cli, tmp_path: Path) -> None:
    (tmp_path / "person.json").write_text(json.dumps(PERSON))
    pq.write_table(pa.table({"name": ["Ada", "Eve"]}), tmp_path / "p.parquet")  # type: ignore[no-untyped-call]
    options = ("--from", "parquet", "--value-schema", str(tmp_path / "person.json"))
    schemas("produce", "sr-people", str(tmp_path / "p.parquet"), *options)
    assert schemas("consume", "sr-people", "-e").out == b'{"name":"Ada"}\n{"name":"Eve"}\n'
    (tmp_path / "text.parquet").write_text("not Parquet")
    run = schemas("produce", "sr-people", str(tmp_path / "text.parquet"), *options, code=1)
    assert "text.parquet" in run.err
    assert "Traceback" not in run.err


def test_subject_names_complete(schemas: Cli, registry: str, avro: str) -> None:
    schemas("schema", "register", "complete-me-value", avro)

    def completed(command: str, registry: str) -> bytes:
        return schemas(
            _HEADGATE_COMPLETE="complete_bash",
            COMP_WORDS=f"headgate schema {command} complete-m",
            COMP_CWORD="3",
            HEADGATE_REGISTRY_URL=registry,
        ).out.strip()

    commands = ("get", "diff", "versions", "check")
    assert [completed(command, registry) for command in commands] == [b"complete-me-value"] * 4
    assert completed("get", "127.0.0.1:9") == b""


def test_tables_differences_poison_and_errors_on_a_terminal(schemas: Cli, avro: str) -> None:
    schema_id = schemas("schema", "register", "tty-value", avro).lines[0]
    (schemas.folder / "wider.avsc").write_text(json.dumps(ORDER).replace("long", "double"))
    heading, rule, row = shown_lines(schemas.on_terminal("schema", "list", "tty"))
    assert (heading.split(), set(rule.strip())) == (["SUBJECT", "VERSION", "ID", "TYPE"], {"─"})
    assert row.split() == ["tty-value", "1", schema_id, "AVRO"]
    assert heading.index("VERSION") + len("VERSION") == row.index(" 1 ") + 2, "numbers are right-aligned"

    shown = schemas.on_terminal("schema", "diff", "tty-value", "wider.avsc", "--level", "FULL", code=3)
    assert shown_lines(shown) == [
        " CHANGE         PATH   OLD    NEW      BACKWARD   FORWARD",
        " ────────────────────────────────────────────────────────",
        " type widened   id     long   double   ok         breaks",
        "TYPE_MISMATCH /fields/0/type (version 1, old-reads-new): a reader of long cannot read double",
        "  undo this change, or first register a version that reads both",
        "tty-value, version 1 and wider.avsc: 1 change, not compatible at level FULL",
    ]

    poison = b"\0" + int(schema_id).to_bytes(4)
    good = poison + b"\x02\0"
    schemas("produce", "tty", stdin=b"\n".join([good, poison, good]))
    shown = schemas.on_terminal("consume", "tty", "-e", code=1)
    assert "\x1b[1merror: 1 record could not be decoded\x1b[0m" in shown
    assert shown_lines(shown)[:5] == [
        '{"id":1,"note":null}',
        f"tty-0 offset 1: the value is poison: TRUNCATED (schema {schema_id}): id: the bytes end inside a number at 0",
        '{"id":1,"note":null}',
        "error: 1 record could not be decoded",
        "  why: TRUNCATED 1",
    ]

    heading, rule, *rows = shown_lines(schemas.on_terminal("topic", "list"))
    assert heading.split() == ["TOPIC", "PARTITIONS", "REPLICAS", "SIZE"]
    assert set(rule.strip()) == {"─"}
    assert ["tty", "1", "1"] in [row.split()[:3] for row in rows]
    shown = schemas.on_terminal("schema", "get", "nothing", code=3, NO_COLOR="1")
    assert shown == (
        "error: the registry has no such subject, version or schema\n"
        "  why: Subject 'nothing' not found.\n"
        "  try: headgate schema list shows all subjects\n"
    )
