"""Java's properties format."""

from pathlib import Path

import pytest

from headgate.kafka_client.errors import InvalidProperty
from headgate.kafka_client.properties import load_properties, parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb: 2\nc 3\r\nd\n", {"a": "1", "b": "2", "c": "3", "d": ""}),
        ("# a=1\n  ! b=2\n\n   c = 3 ", {"c": "3 "}),
        ("jaas=one \\\n    two \\\n    three;", {"jaas": "one two three;"}),
        ("path=C\\:\\\\x\\ty\nkey\\ with\\=both=v", {"path": "C:\\x\ty", "key with=both": "v"}),
        ("name=\\u00e9t\\u00E9", {"name": "été"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\na=2", {"a": "2"}),
        ('password="#=:!"', {"password": '"#=:!"'}),
        ("last=ends with\\", {"last": "ends with"}),
    ],
)
def test_text_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidProperty, match=r"missing\.properties: cannot read the file: No such file"):
        load_properties(tmp_path / "missing.properties")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidProperty, match="not UTF-8"):
        load_properties(tmp_path / "binary")
