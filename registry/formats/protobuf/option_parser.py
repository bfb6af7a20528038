"""Parses options and their values: `name.(extension) = value`, message literals and lists."""

from headgate.registry.formats.protobuf.cursor import DIGITS_MAX, Cursor
from headgate.registry.formats.protobuf.lexer import Kind
from headgate.registry.formats.protobuf.syntax_tree import (
    Aggregate,
    NamePart,
    Number,
    Option,
    Sequence,
    Text,
    Value,
    Word,
)


def parse_value(text: str) -> Value:
    """Parse a single option value."""
    return OptionParser(text).value()


class OptionParser(Cursor):
    """The part of the grammar that option statements and option lists share."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._literal_depth = 0

    def value(self) -> Value:
        found = self._value()
        if self._kinds[self._at] != Kind.END:
            self._fail("Expected the end of the value")
        return found

    def _option_statement(self) -> Option:
        self._at += 1
        option = self._option()
        self._expect(";")
        return option

    def _bracket_options(self) -> tuple[Option, ...]:
        if not self._take("["):
            return ()
        options = [self._option()]
        while self._take(","):
            options.append(self._option())
        self._expect("]")
        return tuple(options)

    def _option(self) -> Option:
        line = self._here()
        parts: list[NamePart] = []
        while True:
            if self._take("("):
                leading = "." if self._take(".") else ""
                parts.append(NamePart(leading + self._full_name(), extension=True))
                self._expect(")")
            else:
                parts.append(NamePart(self._name(), extension=False))
            if not self._take("."):
                break
        self._expect("=")
        # protoc accepts lists only inside { }. Confluent's registry also accepts and prints them here.
        value = self._sequence() if self._texts[self._at] == "[" else self._value()
        return Option(tuple(parts), value, line)

    def _value(self) -> Value:
        kind, word = self._kinds[self._at], self._texts[self._at]
        if kind == Kind.TEXT:
            return Text(self._string())
        if kind == Kind.NAME:
            self._at += 1
            return Word(word)
        if word == "{":
            return self._aggregate("}")
        sign = ""
        if word in ("-", "+"):
            sign = "-" if word == "-" else ""
            self._at += 1
            if self._kinds[self._at] == Kind.NAME:
                self._at += 1
                return Word(sign + self._texts[self._at - 1])
        if self._kinds[self._at] != Kind.NUMBER:
            self._fail("Expected a value")
        if len(self._texts[self._at]) > DIGITS_MAX:
            self._fail(f"The number has more than {DIGITS_MAX} digits")
        self._at += 1
        return Number(sign + self._texts[self._at - 1])

    def _aggregate(self, close: str) -> Aggregate:
        self._literal_depth += 1
        self._check_depth(self._literal_depth)
        self._at += 1
        entries: list[tuple[str, Value]] = []
        while not self._take(close):
            if self._take("["):
                key = self._full_name()
                if self._take("/"):
                    key = f"{key}/{self._full_name()}"
                key = f"[{key}]"
                self._expect("]")
            else:
                key = self._name()
            colon = self._take(":")
            word = self._texts[self._at]
            if word in ("{", "<"):
                entries.append((key, self._aggregate("}" if word == "{" else ">")))
            elif word == "[":
                entries.append((key, self._sequence()))
            elif colon:
                entries.append((key, self._value()))
            else:
                self._fail("Expected : or {")
            if not self._take(","):
                self._take(";")
        self._literal_depth -= 1
        return Aggregate(tuple(entries))

    def _sequence(self) -> Sequence:
        self._at += 1
        items: list[Value] = []
        if self._take("]"):
            return Sequence(())
        while True:
            word = self._texts[self._at]
            items.append(self._aggregate("}" if word == "{" else ">") if word in ("{", "<") else self._value())
            if not self._take(","):
                break
        self._expect("]")
        return Sequence(tuple(items))
