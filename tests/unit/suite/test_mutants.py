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
        ("x = 'é' if a else 7", ["x = 'é' if a else (8)"]),
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
    ],
)
def test_annotations_and_strings_are_left_alone(source: str) -> None:
    assert list(mutants_of(source)) == []
