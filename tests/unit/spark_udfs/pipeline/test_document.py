"""Parsing of pipeline files: TOML, YAML, lines, variables, limits."""

from pathlib import Path

import pytest

from headgate.spark_udfs.pipeline.document import FILE_BYTES_MAX, Document, parse_toml, parse_yaml, read_document
from headgate.spark_udfs.pipeline.errors import PipelineMistakes

HERE = Path()


def toml(text: str, environment: dict[str, str] | None = None, overrides: dict[str, str] | None = None) -> Document:
    return parse_toml(text, "p.toml", HERE, environment or {}, overrides)


def yaml(text: str, environment: dict[str, str] | None = None) -> Document:
    return parse_yaml(text, "p.yaml", HERE, environment or {})


def test_toml_and_yaml_have_the_same_values() -> None:
    one = toml('name = "a"\n[sources.orders]\ntype = "topic"\nfields = ["id", "at"]\nversion = 3\n')
    other = yaml("name: a\nsources:\n  orders:\n    type: topic\n    fields: [id, at]\n    version: 3\n")
    assert one.values == other.values
    assert one.line_of(("sources", "orders", "type")) == 3
    assert other.line_of(("sources", "orders", "type")) == 4
    assert one.line_of(("sources", "orders", "missing")) == 2


def test_lines_are_correct_after_multiline_strings_and_for_dotted_keys() -> None:
    text = 'sql = """\ntype = 1\n[sinks.x]\n"""\n[kafka]\nbootstrap.servers = "a:1"\n"sasl.mechanism" = "PLAIN"\n'
    document = toml(text)
    assert document.line_of(("type",)) is None
    assert document.line_of(("kafka", "bootstrap", "servers")) == 6
    assert document.line_of(("kafka", "sasl.mechanism")) == 7


def test_thirty_two_levels_of_nesting_are_accepted() -> None:
    nested: object = []
    for _ in range(30):
        nested = [nested]
    assert yaml("a: " + "[" * 31 + "]" * 31).values == {"a": nested}


@pytest.mark.parametrize("text", ["a = ", "[a\n", "a = 1\na = 2\n", "x = " + "[" * 5000])
def test_invalid_toml_is_reported(text: str) -> None:
    with pytest.raises(PipelineMistakes, match=r"p\.toml"):
        toml(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1, 2", "not YAML"),
        ("a: 1\na: 2\n", "duplicate key; first in line 1"),
        ("a: &x [1]\nb: *x\n", "aliases"),
        ("a: !!python/object:os.system x\n", "is not supported"),
        ("- 1\n- 2\n", "expected a mapping"),
        ("[" * 3000 + "]" * 3000, "nested too deeply"),
        ("a: " + "[" * 32 + "]" * 32, "nested too deeply"),
        ("\x00", "not YAML"),
    ],
)
def test_invalid_or_unsupported_yaml_is_reported(text: str, message: str) -> None:
    with pytest.raises(PipelineMistakes, match=message):
        yaml(text)


def test_dates_are_strings_in_yaml() -> None:
    assert yaml("a: 2026-11-16\nb: yes\nc: ~\n").values == {"a": "2026-11-16", "b": True, "c": None}


def test_environment_variables_are_substituted() -> None:
    document = toml('a = "${HOST}:${PORT:-9092}"\nb = "$$5 ${EMPTY:-}"\n', {"HOST": "kafka"})
    assert document.values == {"a": "kafka:9092", "b": "$5 "}


def test_every_missing_variable_is_reported_with_its_line() -> None:
    with pytest.raises(PipelineMistakes) as caught:
        toml('a = "${ONE}"\n[t]\nb = ["${TWO}"]\n')
    assert [(each.path, each.line) for each in caught.value.mistakes] == [("a", 1), ("t.b.0", 3)]
    assert "the environment variable TWO is not set" in str(caught.value)


def test_overrides_replace_values_of_the_file() -> None:
    text = 'trigger = "1s"\n[kafka]\nbootstrap.servers = "a:1"\n'
    overrides = {"trigger": "5s", "kafka.bootstrap.servers": "b:2", "sources.o.rows_per_batch": "7"}
    values = toml(text, overrides=overrides).values
    assert values["trigger"] == "5s"
    assert values["kafka"]["bootstrap"]["servers"] == "b:2"
    assert values["sources"]["o"]["rows_per_batch"] == 7


def test_an_override_cannot_use_a_value_as_a_table() -> None:
    with pytest.raises(PipelineMistakes, match="this key is a value, not a table"):
        toml('trigger = "1s"\n', overrides={"trigger.x": "1"})


def test_files_are_checked_before_they_are_parsed(tmp_path: Path) -> None:
    large, odd, binary = tmp_path / "large.toml", tmp_path / "p.json", tmp_path / "b.yaml"
    large.write_bytes(b"#" * (FILE_BYTES_MAX + 1))
    odd.write_text("{}")
    binary.write_bytes(b"a: \xff\xfe")
    for file, message in (
        (large, "the maximum is"),
        (odd, r"\.toml, \.yaml"),
        (binary, "not UTF-8"),
        (tmp_path, "read"),
    ):
        with pytest.raises(PipelineMistakes, match=message):
            read_document(file, {})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: *x\n", 2),
        ("a: 1\nb: &x 2\nc: [*x]\n", 3),
        ("a: 1\n\nb: " + "[" * 40 + "]" * 40, 3),
        ("a: 1\nb: [1\nc: 2\n", 3),
        ("[1]", 1),
    ],
)
def test_mistakes_in_yaml_have_a_line(text: str, line: int) -> None:
    with pytest.raises(PipelineMistakes) as caught:
        yaml(text)
    assert [each.line for each in caught.value.mistakes] == [line]
