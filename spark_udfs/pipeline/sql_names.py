"""Find the tables of a SQL text: the names after FROM and JOIN. Works without Spark, which parses the text later."""

import re
from collections.abc import Iterable

_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?P<quoted>[^`]*)`|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[,().])""",
    re.DOTALL,
)
_ENDS_FROM = frozenset(
    {
        *("where", "group", "having", "order", "limit", "union", "except", "intersect", "select", "on", "using"),
        *("window", "sort", "cluster", "distribute"),
    }
)


def sql_inputs(sql: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that the text selects from, in the order of the text."""
    names = {name.lower(): name for name in known}
    found: list[str] = []
    expecting = in_from = False
    for token in _TOKEN.finditer(sql):
        name = token["quoted"] or token["word"]
        if token["sign"] is not None:
            expecting = token["sign"] == "," and in_from
            in_from = in_from and token["sign"] != ")"
            continue
        if name is None:
            continue
        word = name.lower()
        if token["word"] is not None and word in {"from", "join"}:
            expecting = in_from = True
        elif token["word"] is not None and word in _ENDS_FROM:
            expecting = in_from = False
        elif expecting:
            expecting = False
            if word in names and names[word] not in found:
                found.append(names[word])
    return tuple(found)
