"""A pipeline's file as plain values: TOML or YAML, with the line of every key, and `${VARIABLES}` put in.

What the values mean is `spark_udfs.pipeline.checks`' matter. YAML is read in its JSON part: texts, numbers, booleans,
null, lists and mappings; no tags, no anchors, no key twice.
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
"""Nobody writes more by hand, and a parser's memory is a multiple of its input."""

DEPTH_MAX = 32
"""Levels of nesting; the format itself needs five."""

Path_ = tuple[str, ...]

_VARIABLE = re.compile(r"\$\$|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<has_default>:-(?P<default>[^}]*))?\}")
_HEADER = re.compile(r"^\s*\[\[?\s*(?P<keys>[^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(
    r"""^\s*(?P<keys>(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


@dataclass(frozen=True, slots=True)
class Document:
    """The values, and where each was written."""

    file: str
    folder: Path
    values: Mapping[str, Any]
    lines: Mapping[Path_, int] = field(default_factory=dict)

    def line_of(self, path: Path_) -> int | None:
        """Of the key, or of the nearest thing around it."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path[:-1]
        return None


def read_document(file: Path, environment: Mapping[str, str], overrides: Mapping[str, str] | None = None) -> Document:
    """`overrides` are values by dotted key that go before the file's. Raises `PipelineMistakes`."""
    name = str(file)
    try:
        size = file.stat().st_size
        if size > FILE_BYTES_MAX:
            raise PipelineMistakes(name, [Mistake("", None, f"{size:,} bytes; {FILE_BYTES_MAX:,} are the most")])
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise PipelineMistakes(name, [Mistake("", None, f"not UTF-8: {error.reason} at byte {error.start}")]) from error
    except OSError as error:
        raise PipelineMistakes(name, [Mistake("", None, f"cannot be read: {error.strerror or error}")]) from error
    kind = file.suffix.lower()
    if kind not in {".toml", ".yaml", ".yml"}:
        raise PipelineMistakes(name, [Mistake("", None, "the name must end in .toml, .yaml or .yml")])
    parse = parse_toml if kind == ".toml" else parse_yaml
    return parse(text, name, file.parent, environment, overrides)


def placed(path: str, document: Document) -> str:
    """A path relative to the file, as an absolute one; addresses (`s3a://…`) stay as they are."""
    if not path or "://" in path:
        return path
    return str((document.folder / path).absolute())


def parse_toml(
    text: str,
    file: str,
    folder: Path,
    environment: Mapping[str, str],
    overrides: Mapping[str, str] | None = None,
) -> Document:
    try:
        values = tomllib.loads(text)
    except RecursionError as error:
        raise PipelineMistakes(file, [Mistake("", None, "nested too deeply")]) from error
    except ValueError as error:
        line = re.search(r"line (\d+)", str(error))
        raise PipelineMistakes(file, [Mistake("", int(line[1]) if line else None, f"not TOML: {error}")]) from error
    return _finished(file, folder, values, _toml_lines(text), environment, overrides or {})


def parse_yaml(
    text: str,
    file: str,
    folder: Path,
    environment: Mapping[str, str],
    overrides: Mapping[str, str] | None = None,
) -> Document:
    try:
        import yaml
    except ImportError as error:
        missing = "YAML needs PyYAML: pip install 'headgate[spark]'; TOML needs nothing"
        raise PipelineMistakes(file, [Mistake("", None, missing)]) from error
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                line = event.start_mark.line + 1 if event.start_mark is not None else None
                raise PipelineMistakes(file, [Mistake("", line, "aliases (*name) are not taken; write it out")])
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except RecursionError as error:
        raise PipelineMistakes(file, [Mistake("", None, "nested too deeply")]) from error
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark.line + 1 if error.problem_mark is not None else None
        raise PipelineMistakes(file, [Mistake("", at, f"not YAML: {error.problem or error.context}")]) from error
    except yaml.YAMLError as error:
        raise PipelineMistakes(file, [Mistake("", None, f"not YAML: {error}")]) from error
    reading = _YamlReading(file)
    values = reading.value(root, ()) if root is not None else {}
    if not isinstance(values, dict):
        reading.mistakes.append(Mistake("", 1, f"a mapping of names is expected, not {shown(values)}"))
    if reading.mistakes:
        raise PipelineMistakes(file, reading.mistakes)
    return _finished(file, folder, values, reading.lines, environment, overrides or {})


class _YamlReading:
    """Values out of the nodes of one file, with their lines."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[Path_, int] = {}
        self.mistakes: list[Mistake] = []

    def value(self, node: "yaml.Node", path: Path_) -> Any:
        import yaml

        line = node.start_mark.line + 1
        if len(path) > DEPTH_MAX:
            self.mistakes.append(Mistake(".".join(path[:4]) + "…", line, "nested too deeply"))
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each, (*path, str(at))) for at, each in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        return self._scalar(node, path, line)

    def _mapping(self, node: "yaml.MappingNode", path: Path_) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, inner in node.value:
            name = str(key.value) if not isinstance(key.value, list) else ""
            line = key.start_mark.line + 1
            at = (*path, name)
            if not name:
                self.mistakes.append(Mistake(".".join(path), line, "a key must be a text"))
            elif name in found:
                self.mistakes.append(Mistake(".".join(at), line, f"written twice; first in line {self.lines[at]}"))
            else:
                self.lines[at] = line
                found[name] = self.value(inner, at)
        return found

    def _scalar(self, node: "yaml.ScalarNode", path: Path_, line: int) -> Any:
        import yaml

        kind = str(node.tag).rpartition(":")[2]
        if kind not in {"str", "int", "float", "bool", "null", "timestamp", "value"}:
            self.mistakes.append(Mistake(".".join(path), line, f"{node.tag} is not taken; texts, numbers, lists are"))
            return None
        if kind in {"str", "timestamp", "value"}:
            return str(node.value)
        try:
            constructor = yaml.constructor.SafeConstructor()
            return constructor.construct_object(node)
        except (ValueError, yaml.YAMLError):
            self.mistakes.append(Mistake(".".join(path), line, f"{shown(node.value)} is not a value of YAML"))
            return None


def _toml_lines(text: str) -> dict[Path_, int]:
    """Where each key is. The parser does not tell, and the shapes that people write are few."""
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


def _finished(
    file: str,
    folder: Path,
    values: Mapping[str, Any],
    lines: Mapping[Path_, int],
    environment: Mapping[str, str],
    overrides: Mapping[str, str],
) -> Document:
    mistakes: list[Mistake] = []
    document = Document(file, folder, values, lines)
    filled = _filled(values, (), environment, document, mistakes)
    for key, value in overrides.items():
        _override(filled, key, value, mistakes)
    if mistakes:
        raise PipelineMistakes(file, mistakes)
    return Document(file, folder, filled, lines)


def _filled(
    value: Any, path: Path_, environment: Mapping[str, str], document: Document, mistakes: list[Mistake]
) -> Any:
    """The same value with `${NAME}` and `${NAME:-default}` replaced in its texts; `$$` is a dollar."""
    if len(path) > DEPTH_MAX:
        mistakes.append(Mistake(".".join(path[:4]) + "…", document.line_of(path), "nested too deeply"))
        return None
    if isinstance(value, Mapping):
        return {key: _filled(inner, (*path, key), environment, document, mistakes) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, (*path, str(at)), environment, document, mistakes) for at, inner in enumerate(value)]
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
                f"the environment has no {name}; export it, or give a default: ${{{name}:-…}}",
            )
        )
        return ""

    return _VARIABLE.sub(put, value)


def _override(values: dict[str, Any], key: str, text: str, mistakes: list[Mistake]) -> None:
    """Sets one value by its dotted key; the text is a TOML value where it is one, else itself."""
    *tables, last = key.split(".")
    inner = values
    for at, name in enumerate(tables):
        step = inner.setdefault(name, {})
        if not isinstance(step, dict):
            mistakes.append(Mistake(".".join(tables[: at + 1]), None, f"--set {key}: this is a value, not a table"))
            return
        inner = step
    if not last:
        mistakes.append(Mistake(key, None, "--set takes KEY=VALUE"))
        return
    try:
        inner[last] = tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except (ValueError, KeyError, RecursionError):
        inner[last] = text
