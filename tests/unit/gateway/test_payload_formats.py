import pytest

from headgate.gateway.records.payload_format import BadPayloadFormat, PayloadFormats, decoder_of, parse_formats
from headgate.gateway.records.record import Text
from headgate.serdes import Poison, Reason


@pytest.mark.parametrize(
    ("options", "raw", "expected"),
    [
        ([], False, PayloadFormats("auto", "auto")),
        ([], True, PayloadFormats("raw", "raw")),
        (["avro"], False, PayloadFormats("avro", "avro")),
        (["value=json"], False, PayloadFormats("auto", "json")),
        (["key=>q", "value=hex"], False, PayloadFormats(">q", "hex")),
        (["hex", "key=string"], False, PayloadFormats("string", "hex")),
    ],
)
def test_options_choose_the_format_of_keys_and_values(options: list[str], raw: bool, expected: PayloadFormats) -> None:
    assert parse_formats(options, raw=raw) == expected


@pytest.mark.parametrize("option", ["", "value=", "header=hex", "xml", "<", "$", "value=zz"])
def test_other_options_are_rejected(option: str) -> None:
    with pytest.raises(BadPayloadFormat):
        parse_formats([option])


@pytest.mark.parametrize(
    ("name", "payload", "expected"),
    [
        ("string", "ü".encode(), "ü".encode()),
        ("string", b"\xff", Reason.CORRUPT),
        ("hex", b"\x00\xff", b"00ff"),
        ("base64", b"\x00\xff", b"AP8="),
        ("i", b"\x00\x00\x00\x05", b"5"),
        ("<i", b"\x05\x00\x00\x00", b"5"),
        ("b B", b"\xff\xff", b"-1 255"),
        (">hq$", b"\x00\x01" + b"\xff" * 8, b"1 -1"),
        (">h$", b"\x00\x01\x00", Reason.TRAILING_BYTES),
        ("q", b"\x00", Reason.TRUNCATED),
        ("bs", b"\x02rest", b"2 rest"),
        ("c", b"x", b"x"),
    ],
)
def test_payloads_without_a_schema_are_decoded(name: str, payload: bytes, expected: bytes | Reason) -> None:
    decode = decoder_of(name)
    assert decode is not None
    found = decode(payload)
    if isinstance(expected, Reason):
        assert isinstance(found, Poison)
        assert (found.reason, found.raw) == (expected, payload)
    else:
        assert found == Text(expected)


@pytest.mark.parametrize("name", ["auto", "raw", "avro", "protobuf", "json"])
def test_formats_with_a_registry_have_no_decoder(name: str) -> None:
    assert decoder_of(name) is None
