"""Each mutant changes one expression, and is valid Python."""

import ast

import pytest

from tests.mutation.mutants import mutants_of


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("x = a < b", ["x = (a <= b)"]),
        ("x = a is None", ["x = (a is not None)"]),
        ("x = a and b", ["x = (a or b)"]),
        ("x = not a", ["x = (a)"]),
        ("x = a + b", ["x = (a - b)"]),
        ("x = True", ["x = (False)"]),
        ("x = start_ms / 1000", ["x = start_ms / (1001)"]),
        ("f(strict=True)", ["f(strict=(False))"]),
        ("x = 'é' if a else 7", ["x = 'é' if a else (8)"]),
        ("HEADER_BYTES = 61", ["HEADER_BYTES = (62)"]),
        ("A_MAX = B + 1", ["A_MAX = (B - 1)", "A_MAX = B + (2)"]),
        ("def f():\n    size_max = 5", ["def f():\n    size_max = (6)"]),
        ("class A:\n    acks: int = 5", ["class A:\n    acks: int = (6)"]),
        ("f(\n    a,\n    b == c,\n)", ["f(\n    a,\n    (b != c),\n)"]),
    ],
)
def test_an_expression_is_changed_in_place(source: str, changed: list[str]) -> None:
    mutants = list(mutants_of(source))
    assert [mutant.text for mutant in mutants] == changed
    for mutant in mutants:
        ast.parse(mutant.text)


@pytest.mark.parametrize(
    "source",
    [
        "x: int | None",
        "def f(a: int = b) -> int | str: ...",
        "if TYPE_CHECKING:\n    x = 1",
        "x = f'{a + b}'",
        "X = int | None",
        "logger.warning('%d of %d', a + 1, b)",
        "FRAME_BYTES_MAX = 64 * 1024",
        "retry_ms: Final = 100",
        "class A:\n    pending_bytes_max: int = 64 * 1024",
        "wait(self._options.request_timeout_ms / 1000)",
        "zip(a, b, strict=True)",
        "class A:\n    def __repr__(self) -> str:\n        return str(1 + 2)",
    ],
)
def test_code_that_no_test_can_check_is_left_alone(source: str) -> None:
    assert list(mutants_of(source)) == []


def test_a_mutant_knows_the_lines_of_its_statement() -> None:
    source = "if a and (\n    b\n):\n    c(\n        1,\n    )\nelse:\n    d = 2\n"
    assert [(mutant.before, mutant.statement) for mutant in mutants_of(source)] == [
        ("a and (\n    b\n)", range(1, 4)),
        ("1", range(4, 7)),
        ("2", range(8, 9)),
    ]
