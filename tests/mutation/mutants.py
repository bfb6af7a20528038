"""Small changes of an expression: the mutants of a source file."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
LIMIT_SUFFIXES = ("_max", "_min", "_default", "_ms", "_seconds", "_threads", "_at_once")
LOG_METHODS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})


@dataclass(frozen=True, slots=True)
class Mutant:
    line: int
    statement: range
    """The lines of the statement, without its body. A test that runs none of them cannot detect the mutant."""
    before: str
    after: str
    text: str
    """The source of the whole file with the change."""


def mutants_of(source: str) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of the source."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    encoded = source.encode()
    for node, statement in _code(ast.parse(source), range(0)):
        changed = _changed(node)
        if changed is None or node.end_lineno is None or node.end_col_offset is None:
            continue
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[node.end_lineno - 1] + node.end_col_offset
        after = f"({ast.unparse(changed)})"
        text = (encoded[:first] + after.encode() + encoded[last:]).decode()
        lines_of_code = range(statement.start, max(statement.stop, node.end_lineno + 1))
        yield Mutant(node.lineno, lines_of_code, encoded[first:last].decode(), after, text)


def _code(node: ast.AST, statement: range) -> Iterator[tuple[ast.expr, range]]:
    """Expressions that run, each with the lines of its statement.

    Leaves out limits, annotations, and parts of f-strings: before Python 3.12 they have no exact position.
    """
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if (
                not isinstance(child, ast.AST)
                or isinstance(child, ast.JoinedStr | ast.Slice)
                or _is_undetectable(child)
                or (isinstance(node, ast.Module | ast.ClassDef) and _is_limit(child))
            ):
                continue
            if name == "right" and _is_timeout_in_seconds(node):
                continue
            # `zip(…, strict=True)` asserts equal lengths. It has an effect only after another mistake.
            if name == "keywords" and isinstance(node, ast.Call) and ast.unparse(node.func) == "zip":
                continue
            lines = _lines(child) if isinstance(child, ast.stmt) else statement
            if isinstance(child, ast.expr):
                yield child, lines
            yield from _code(child, lines)


def _is_undetectable(node: ast.AST) -> bool:
    """Code whose result only a person reads, or that never runs."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.FunctionDef):
        return node.name == "__repr__"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return ast.unparse(node.func.value) in ("logger", "logging", "self._logger") and node.func.attr in LOG_METHODS
    return False


def _is_limit(node: ast.AST) -> bool:
    """Whether a constant or the default of an option is a limit or a tuning parameter: `RETRY_SECONDS_MAX = 2 * 60`.

    Its number is a choice: a test of the exact value would repeat the definition. Code that compares with the limit
    has mutants, and so have constants of a protocol or file format.
    """
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    numbers = ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop
    return (
        isinstance(target, ast.Name)
        and target.id.lower().endswith(LIMIT_SUFFIXES)
        and all(isinstance(part, numbers) for part in ast.walk(node.value))
    )


def _is_timeout_in_seconds(node: ast.AST) -> bool:
    """`request_timeout_ms / 1000`: a timeout that is a thousandth shorter has no effect that a test can wait for."""
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and ast.unparse(node.left).endswith("timeout_ms")
        and ast.unparse(node.right) == "1000"
    )


def _lines(statement: ast.stmt) -> range:
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return range(statement.lineno, max(last, statement.lineno) + 1)


def _changed(node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        return ast.Compare(node.left, [COMPARISONS[type(node.ops[0])]()], node.comparators)
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_type_union(node):
        return ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return ast.Constant(not node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return ast.Constant(node.value + 1)
    return None


def _is_type_union(node: ast.BinOp) -> bool:
    """`int | None` in an alias or in isinstance."""
    return isinstance(node.op, ast.BitOr) and any(
        isinstance(side, ast.Constant) and side.value is None for side in (node.left, node.right)
    )
