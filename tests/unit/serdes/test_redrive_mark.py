import pytest

from headgate.serdes.redrive_mark import Mark, MarkState, mark_headers, read_mark

MARK = Mark(3, 2**40, MarkState.STARTED, "someone", 1_794_790_923_456)


def test_a_mark_is_read_back() -> None:
    assert read_mark(mark_headers(MARK)) == MARK


@pytest.mark.parametrize("at", range(5))
def test_a_damaged_mark_is_not_a_mark(at: int) -> None:
    headers = list(mark_headers(MARK))
    headers[at] = (headers[at][0], b"\xff?")
    found = read_mark(headers)
    assert found is None or (found.partition, found.offset, found.state) == (3, 2**40, MarkState.STARTED)
    assert read_mark(mark_headers(MARK)[:at]) is None


def test_other_records_are_not_marks() -> None:
    assert read_mark([]) is None
    assert read_mark([("headgate.dead_letter.topic", b"orders")]) is None
