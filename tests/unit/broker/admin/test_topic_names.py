import pytest

from headgate.broker.state.topic_names import TakenNames, topic_name_fault


@pytest.mark.parametrize("name", ["a", "a.b_c-D9", "x" * 249, "...", "__consumer_offsets"])
def test_legal_names(name: str) -> None:
    assert topic_name_fault(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ü", "a\n", "a\x00", "٣"])
def test_illegal_names_are_explained(name: str) -> None:
    fault = topic_name_fault(name)
    assert fault is not None
    assert fault.startswith("Topic name is invalid: ")


def test_names_that_differ_in_dots_and_underscores_alone_collide() -> None:
    taken = TakenNames(["a.b", "other"])
    assert taken.colliding_with("a_b") == "a.b"
    assert taken.colliding_with("a.b") is None
    assert taken.colliding_with("a-b") is None
    taken.add("c_d")
    assert taken.colliding_with("c.d") == "c_d"
