from headgate.proxy.dead_letters.hex_dump import DUMP_BYTES_MAX, fault_position, hex_dump
from headgate.serdes import DeadLetter, Reason, Record


def letter(detail: str, schema_id: int | None = 1) -> DeadLetter:
    origin = Record("t", None, b"")
    return DeadLetter(origin, Reason.CORRUPT, detail, "value", schema_id, None, None, 1, None, "headgate")


def test_a_caret_marks_the_fault() -> None:
    lines = hex_dump(b"\0\0\0\0\1" + b"Hi\xff", 7).splitlines()
    assert lines == [
        "00000000  00 00 00 00 01 48 69 ff                          .....Hi.",
        "                               ^^",
    ]


def test_a_fault_after_the_last_byte_has_a_caret() -> None:
    assert hex_dump(b"\0" * 16, 16).splitlines()[-1] == " " * 10 + "^^"


def test_a_long_payload_is_shown_around_the_fault() -> None:
    dump = hex_dump(bytes(100_000), 50_000)
    assert dump.count("\n") < DUMP_BYTES_MAX // 16 + 4
    assert "^^" in dump
    assert dump.startswith("... ")
    assert dump.endswith(" bytes after")


def test_the_position_is_the_one_in_the_body_after_the_schema_id() -> None:
    payload = b"\0\0\0\0\1abc"
    assert fault_position(letter("id: a number of more than 64 bits at 2"), payload) == 7
    assert fault_position(letter("not UTF-8 at byte 1", None), payload) == 1
    assert fault_position(letter("the bytes end inside a string at 900"), payload) == len(payload)
    assert fault_position(letter("the registry does not know the id"), payload) is None
