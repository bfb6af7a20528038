"""Parse a pipeline file (TOML or YAML) into plain values, with the line of every key and `${VARIABLES}` replaced.

`spark_udfs.pipeline.checks` validates the values. YAML is restricted to the JSON types: strings, numbers, booleans,
null, lists and mappings, without tags, anchors and duplicate keys.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.pipeline.errors import Mistake, PipelineMistakes, shown

if TYPE_CHECKING:
    import yaml

FILE_BYTES_MAX = 1024 * 1024
"""A parser needs a multiple of its input as memory. Files written by hand are smaller."""

DEPTH_MAX = 32
"""Levels of nesting. The format itself needs five."""

Path_ = tuple[str, ...]

_VARIABLE = re.compile(r"\$\$|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<has_default>:-(?P<default>[^}]*))?\}")
_HEADER = re.compile(r"^\s*\[\[?\s*(?P<keys>[^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(
    r"""^\s*(?P<keys>(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


@dataclass(frozen=True, slots=True)
class Document:
    """The values, and the line of each key."""

    file: str
    folder: Path
    values: Mapping[str, Any]
    lines: Mapping[Path_, int] = field(default_factory=dict)

    def line_of(self, path: Path_) -> int | None:
        """The line of a key, or of the closest enclosing table."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path[:-1]
        return None


def read_document(file: Path, environment: Mapping[str, str], overrides: Mapping[str, str] | None = None) -> Document:
    """`overrides` replace values of the file by dotted key. Raises `PipelineMistakes`."""
    name = str(file)
    try:
        size = file.stat().st_size
        if size > FILE_BYTES_MAX:
            raise _mistake(name, f"the file has {size:,} bytes; the maximum is {FILE_BYTES_MAX:,}")
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise _mistake(name, f"not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise _mistake(name, f"cannot read the file: {error.strerror or error}") from error
    kind = file.suffix.lower()
    if kind not in {".toml", ".yaml", ".yml"}:
        raise _mistake(name, "the name must end in .toml, .yaml or .yml")
    parse = parse_toml if kind == ".toml" else parse_yaml
    return parse(text, name, file.parent, environment, overrides)


def _mistake(file: str, message: str, line: int | None = None) -> PipelineMistakes:
    return PipelineMistakes(file, [Mistake("", line, message)])


def resolve_path(path: str, document: Document) -> str:
    """The absolute path of a path relative to the file. URLs (`s3a://…`) stay unchanged."""
    if not path or "://" in path:
        return path
    return str((document.folder / path).absolute())


def parse_toml(
    text: str, file: str, folder: Path, environment: Mapping[str, str], overrides: Mapping[str, str] | None = None
) -> Document:
    try:
        values = tomllib.loads(text)
    except RecursionError as error:
        raise _mistake(file, "nested too deeply") from error
    except ValueError as error:
        line = re.search(r"line (\d+)", str(error))
        raise _mistake(file, f"not TOML: {error}", int(line[1]) if line else None) from error
    return _with_environment(file, folder, values, _toml_lines(text), environment, overrides or {})


def parse_yaml(
    text: str, file: str, folder: Path, environment: Mapping[str, str], overrides: Mapping[str, str] | None = None
) -> Document:
    try:
        import yaml
    except ImportError as error:
        missing = "YAML needs PyYAML: pip install 'headgate[spark]'; TOML needs nothing"
        raise _mistake(file, missing) from error
    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            line = event.start_mark.line + 1 if event.start_mark is not None else None
            if isinstance(event, yaml.AliasEvent):
                raise _mistake(file, "aliases (*name) are not supported; repeat the value", line)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH_MAX:
                # Stop here: the parser takes quadratic time for deep nesting.
                raise _mistake(file, "nested too deeply", line)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark.line + 1 if error.problem_mark is not None else None
        raise _mistake(file, f"not YAML: {error.problem or error.context}", at) from error
    except yaml.YAMLError as error:
        raise _mistake(file, f"not YAML: {error}") from error
    reading = _YamlReading(file)
    values = reading.value(root, ()) if root is not None else {}
    if not isinstance(values, dict):
        reading.mistakes.append(Mistake("", 1, f"expected a mapping, not {shown(values)}"))
    if reading.mistakes:
        raise PipelineMistakes(file, reading.mistakes)
    return _with_environment(file, folder, values, reading.lines, environment, overrides or {})


class _YamlReading:
    """Converts the YAML nodes of one file to values with lines."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[Path_, int] = {}
        self.mistakes: list[Mistake] = []

    def value(self, node: "yaml.Node", path: Path_) -> Any:
        import yaml

        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each, (*path, str(at))) for at, each in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        return self._scalar(node, path, node.start_mark.line + 1)

    def _mapping(self, node: "yaml.MappingNode", path: Path_) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, inner in node.value:
            name = str(key.value) if not isinstance(key.value, list) else ""
            line = key.start_mark.line + 1
            at = (*path, name)
            if not name:
                self.mistakes.append(Mistake(".".join(path), line, "a key must be a string"))
            elif name in found:
                self.mistakes.append(Mistake(".".join(at), line, f"duplicate key; first in line {self.lines[at]}"))
            else:
                self.lines[at] = line
                found[name] = self.value(inner, at)
        return found

    def _scalar(self, node: "yaml.ScalarNode", path: Path_, line: int) -> Any:
        import yaml

        kind = str(node.tag).rpartition(":")[2]
        if kind not in {"str", "int", "float", "bool", "null", "timestamp", "value"}:
            self.mistakes.append(
                Mistake(".".join(path), line, f"{node.tag} is not supported; use strings, numbers and lists")
            )
            return None
        if kind in {"str", "timestamp", "value"}:
            return str(node.value)
        try:
            constructor = yaml.constructor.SafeConstructor()
            return constructor.construct_object(node)
        except (ValueError, yaml.YAMLError):
            self.mistakes.append(Mistake(".".join(path), line, f"{shown(node.value)} is not a valid YAML value"))
            return None


def _toml_lines(text: str) -> dict[Path_, int]:
    """The line of each key. `tomllib` does not report it, so this scans for headers and keys."""
    lines: dict[Path_, int] = {}
    table: Path_ = ()
    inside = ""
    for number, line in enumerate(text.splitlines(), 1):
        if inside:
            if inside in line:
                inside = ""
            continue
        header = _HEADER.match(line)
        key = _KEY.match(line)
        if header is not None:
            table = _parts(header["keys"])
            lines.setdefault(table, number)
        elif key is not None:
            at = (*table, *_parts(key["keys"]))
            lines.setdefault(at, number)
            rest = line[key.end() :]
            for quotes in ('"""', "'''"):
                if rest.count(quotes) == 1:
                    inside = quotes
    return lines


def _parts(keys: str) -> Path_:
    return tuple(part.strip("\"'") for part in _PART.findall(keys))


def _with_environment(
    file: str,
    folder: Path,
    values: Mapping[str, Any],
    lines: Mapping[Path_, int],
    environment: Mapping[str, str],
    overrides: Mapping[str, str],
) -> Document:
    mistakes: list[Mistake] = []
    document = Document(file, folder, values, lines)
    resolved = _substituted(values, (), environment, document, mistakes)
    for key, value in overrides.items():
        _override(resolved, key, value, mistakes)
    if mistakes:
        raise PipelineMistakes(file, mistakes)
    return Document(file, folder, resolved, lines)


def _substituted(
    value: Any, path: Path_, environment: Mapping[str, str], document: Document, mistakes: list[Mistake]
) -> Any:
    """The value with `${NAME}` and `${NAME:-default}` replaced in strings; `$$` is a dollar sign."""
    if len(path) > DEPTH_MAX:
        mistakes.append(Mistake(".".join(path[:4]) + "…", document.line_of(path), "nested too deeply"))
        return None
    if isinstance(value, Mapping):
        return {key: _substituted(inner, (*path, key), environment, document, mistakes) for key, inner in value.items()}
    if isinstance(value, list):
        return [
            _substituted(inner, (*path, str(at)), environment, document, mistakes) for at, inner in enumerate(value)
        ]
    if not isinstance(value, str) or "$" not in value:
        return value

    def put(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return "$"
        if environment.get(name):
            return environment[name]
        if found["has_default"] is not None:
            return str(found["default"])
        mistakes.append(
            Mistake(
                ".".join(path),
                document.line_of(path),
                f"the environment variable {name} is not set; set it, or add a default: ${{{name}:-…}}",
            )
        )
        return ""

    return _VARIABLE.sub(put, value)


def _override(values: dict[str, Any], key: str, text: str, mistakes: list[Mistake]) -> None:
    """Set one value by its dotted key. The text is a TOML value if it parses, else a string."""
    *tables, last = key.split(".")
    inner = values
    for at, name in enumerate(tables):
        step = inner.setdefault(name, {})
        if not isinstance(step, dict):
            mistakes.append(Mistake(".".join(tables[: at + 1]), None, f"--set {key}: this key is a value, not a table"))
            return
        inner = step
    if not last:
        mistakes.append(Mistake(key, None, "--set takes KEY=VALUE"))
        return
    try:
        inner[last] = tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except (ValueError, KeyError, RecursionError):
        inner[last] = text
