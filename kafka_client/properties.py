"""Files in Java's properties format, such as the `client.properties` of Kafka's command-line tools.

Supported: comments (`#`, `!`), the separators `=`, `:` and blank, continuation lines, and the escapes `\\t`, `\\n`,
`\\r`, `\\f` and `\\uXXXX`. Files are UTF-8.
"""

import re
from pathlib import Path
from typing import Final

from headgate.kafka_client.errors import InvalidProperty

file_bytes_max: Final = 1024 * 1024
"""No configuration file is larger. The limit protects against a wrong path."""

# A key ends at the first separator that is not escaped. An escape is a backslash and any character.
_LINE: Final = re.compile(r"(?P<key>(?:\\.|[^\\=:\s])*)\s*[=:]?\s*(?P<value>.*)", re.S)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.S)
_CHARACTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def load_properties(path: str | Path) -> dict[str, str]:
    """Raises InvalidProperty if the file cannot be read."""
    try:
        with open(path, "rb") as file:
            content = file.read(file_bytes_max + 1)
        if len(content) > file_bytes_max:
            raise InvalidProperty(str(path), f"the file is larger than {file_bytes_max} bytes")
        return parse_properties(content.decode())
    except OSError as error:
        raise InvalidProperty(str(path), f"cannot read the file: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidProperty(str(path), "the file is not UTF-8 text") from error


def parse_properties(text: str) -> dict[str, str]:
    """If a key occurs twice, the last value wins, as in Java."""
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _LINE.match(line)
        assert match is not None, "the pattern matches every line"
        found[_unescaped(match["key"])] = _unescaped(match["value"])
    return found


def _logical_lines(text: str) -> list[str]:
    """Lines without comments. A line that ends with an odd number of backslashes continues on the next one."""
    lines: list[str] = []
    unfinished = ""
    for raw in re.split(r"\r\n|\n|\r", text):
        line = raw.lstrip(" \t\f")
        if not unfinished and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            unfinished += line[:-1]
        else:
            lines.append(unfinished + line)
            unfinished = ""
    return [*lines, unfinished] if unfinished else lines


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _CHARACTERS.get(found[2], found[2]), text)
