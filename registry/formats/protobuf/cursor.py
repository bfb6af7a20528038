"""The position of the parser in the tokens of a text: peek, take, expect, and errors with line and column."""

from typing import Final, NoReturn

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf.lexer import Kind, literal, tokenize

NESTING_MAX: Final = 32
"""protoc's limit for nested messages. Serialized descriptors with more than 100 levels cannot be parsed."""

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1
DIGITS_MAX: Final = 400
"""A double has at most 309 digits before the point. Longer numbers only take time."""


class Cursor:
    """Basic operations for the grammar. Subclasses implement the grammar."""

    def __init__(self, text: str) -> None:
        self._tokens = tokenize(text)
        self._kinds = self._tokens.kinds
        self._texts = self._tokens.texts
        self._at = 0
        self._line = 1
        self._line_offset = 0

    def _string(self) -> bytes:
        parts: list[bytes] = []
        while self._kinds[self._at] == Kind.TEXT:
            parts.append(literal(self._texts[self._at], lambda: self._tokens.place(self._at)))
            self._at += 1
        if not parts:
            self._fail("Expected a string in quotes")
        return b"".join(parts)

    def _integer(self, lowest: int, highest: int) -> int:
        negative = self._take("-")
        word = self._texts[self._at]
        if self._kinds[self._at] != Kind.NUMBER or len(word) > DIGITS_MAX:
            self._fail("Expected a whole number")
        try:
            octal = len(word) > 1 and word[0] == "0" and word[1] not in "xX"
            number = int(word, 8 if octal else 0)
        except ValueError:
            self._fail("Expected a whole number")
        number = -number if negative else number
        if not lowest <= number <= highest:
            self._fail(f"{number} is not between {lowest} and {highest}")
        self._at += 1
        return number

    def _type_name(self) -> str:
        leading = "." if self._take(".") else ""
        return leading + self._full_name()

    def _full_name(self) -> str:
        parts = [self._name()]
        while self._take("."):
            parts.append(self._name())
        return ".".join(parts)

    def _name(self) -> str:
        if self._kinds[self._at] != Kind.NAME:
            self._fail("Expected a name")
        self._at += 1
        return self._texts[self._at - 1]

    def _next(self) -> str:
        return self._texts[self._at + 1]

    def _take(self, text: str) -> bool:
        if self._texts[self._at] == text:
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if self._texts[self._at] != text:
            self._fail(f"Expected {text}")
        self._at += 1

    def _check_depth(self, depth: int) -> None:
        if depth > NESTING_MAX:
            self._fail(f"Nested more than {NESTING_MAX} deep")

    def _here(self) -> int:
        """The current line. Counts from the last result, so that the text is scanned only once."""
        offset = self._tokens.offsets[self._at]
        self._line += self._tokens.source.count("\n", self._line_offset, offset)
        self._line_offset = offset
        return self._line

    def _fail(self, reason: str, at: int | None = None) -> NoReturn:
        index = self._at if at is None else at
        found = self._texts[index]
        shown = f"found {found[:40]!r}" if found else "the file ends here"
        raise InvalidSchema(f"{reason}; {shown}", self._tokens.place(index))
