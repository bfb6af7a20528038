import pytest

from headgate.broker.state.configs.alterations import Alteration, Operation, altered
from headgate.broker.state.configs.topic_definitions import TOPIC_CONFIGS
from headgate.broker.state.configs.values import InvalidConfig


def change(overrides: dict[str, str], *operations: tuple[str, Operation, str | None]) -> dict[str, str]:
    alterations = [Alteration(name, operation, value) for name, operation, value in operations]
    return altered(TOPIC_CONFIGS, overrides, alterations, lambda name: "delete")


def test_set_replaces_and_delete_removes() -> None:
    before = {"retention.ms": "1", "flush.ms": "2"}
    after = change(before, ("retention.ms", Operation.SET, "5"), ("flush.ms", Operation.DELETE, None))
    assert after == {"retention.ms": "5"}
    assert before == {"retention.ms": "1", "flush.ms": "2"}


def test_deleting_an_unset_or_unknown_config_succeeds() -> None:
    assert change({}, ("retention.ms", Operation.DELETE, None), ("foo", Operation.DELETE, None)) == {}


@pytest.mark.parametrize(
    ("current", "operation", "value", "after"),
    [
        (None, Operation.APPEND, "compact", "delete,compact"),
        ("delete", Operation.APPEND, "compact,delete,compact", "delete,compact"),
        ("", Operation.APPEND, "compact", "compact"),
        ("delete", Operation.APPEND, "compact,", "delete,compact"),
        ("delete", Operation.APPEND, "", "delete,"),
        ("delete,compact", Operation.SUBTRACT, "delete", "compact"),
        (None, Operation.SUBTRACT, "delete", ""),
        ("compact", Operation.SUBTRACT, "nonsense", "compact"),
        (" delete , compact ", Operation.SUBTRACT, "compact", "delete"),
    ],
)
def test_lists_grow_and_shrink(current: str | None, operation: Operation, value: str, after: str) -> None:
    overrides = {} if current is None else {"cleanup.policy": current}
    assert change(overrides, ("cleanup.policy", operation, value)) == {"cleanup.policy": after}


@pytest.mark.parametrize("name", ["retention.ms", "compression.type", "unknown.config"])
def test_only_lists_can_be_appended_to(name: str) -> None:
    with pytest.raises(InvalidConfig, match=f"Can't SUBTRACT to key {name} because its type is not LIST"):
        change({}, (name, Operation.SUBTRACT, "1"))
