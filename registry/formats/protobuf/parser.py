"""Recursive descent parser for proto2, proto3 and editions. Creates a `syntax_tree.File`.

`linker` resolves names, and `validation` checks combinations. `NESTING_MAX` of the cursor limits the recursion.
"""

from typing import Final

from headgate.registry.formats.protobuf.cursor import INT32_MAX, INT32_MIN
from headgate.registry.formats.protobuf.lexer import Kind
from headgate.registry.formats.protobuf.option_parser import OptionParser
from headgate.registry.formats.protobuf.syntax_tree import (
    TAG_MAX,
    Enum,
    EnumConstant,
    Extend,
    Extensions,
    Field,
    File,
    Import,
    Message,
    Method,
    OneOf,
    Option,
    Range,
    Reserved,
    Service,
)

_LABELS: Final = ("required", "optional", "repeated")
_EDITIONS: Final = ("2023", "2024")


def parse_text(text: str) -> File:
    """Parse `text`. Raises InvalidSchema with line and column."""
    return _Parser(text).file()


class _Parser(OptionParser):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._syntax: str | None = None
        self._edition: str | None = None
        self._message_depth = 0

    def file(self) -> File:
        self._version()
        package: str | None = None
        imports: list[Import] = []
        options: list[Option] = []
        body: list[Message | Enum | Extend | Service] = []
        while self._kinds[self._at] != Kind.END:
            if self._take(";"):
                continue
            word = self._texts[self._at]
            if word == "import":
                imports.append(self._import())
            elif word == "option":
                options.append(self._option_statement())
            elif word == "package":
                if package is not None:
                    self._fail("A file has one package statement")
                self._at += 1
                package = self._full_name()
                self._expect(";")
            elif word == "service":
                body.append(self._service())
            elif word == "extend":
                body.append(self._extend())
            elif word in ("message", "enum", "export", "local"):
                body.append(self._type())
            elif word in ("syntax", "edition"):
                self._fail(f"The {word} statement must be the first of the file")
            else:
                self._fail("Expected message, enum, service, extend, import, package or option")
        return File(self._syntax, self._edition, package or "", tuple(imports), tuple(options), tuple(body))

    def _version(self) -> None:
        while self._take(";"):
            pass
        word = self._texts[self._at]
        if word not in ("syntax", "edition"):
            return
        self._at += 1
        self._expect("=")
        at = self._at
        value = self._string().decode("utf-8", "replace")
        self._expect(";")
        if word == "syntax":
            if value not in ("proto2", "proto3"):
                self._fail(f"Syntax {value!r} is neither proto2 nor proto3", at)
            self._syntax = value
        else:
            if value not in _EDITIONS:
                self._fail(f"Edition {value!r} is none of {', '.join(_EDITIONS)}", at)
            self._edition = value

    def _import(self) -> Import:
        line = self._here()
        self._at += 1
        modifier = self._texts[self._at] if self._texts[self._at] in ("public", "weak", "option") else ""
        if modifier:
            self._at += 1
        at = self._at
        try:
            path = self._string().decode("utf-8")
        except UnicodeDecodeError:
            self._fail("The name of an import is not UTF-8", at)
        if not path:
            self._fail("The name of an import is empty", at)
        self._expect(";")
        return Import(path, modifier, line)

    def _type(self) -> Message | Enum:
        visibility = ""
        if self._texts[self._at] in ("export", "local"):
            if self._edition in (None, "2023"):
                self._fail(f"{self._texts[self._at]} needs edition 2024 or later")
            visibility = self._texts[self._at]
            self._at += 1
        if self._texts[self._at] == "message":
            return self._message(visibility)
        if self._texts[self._at] == "enum":
            return self._enum(visibility)
        return self._fail("Expected message or enum")

    def _message(self, visibility: str = "") -> Message:
        line = self._here()
        self._at += 1
        return self._message_body(self._name(), visibility, line)

    def _message_body(self, name: str, visibility: str, line: int) -> Message:
        self._message_depth += 1
        self._check_depth(self._message_depth)
        self._expect("{")
        body: list[Field | OneOf | Message | Enum | Extend] = []
        options: list[Option] = []
        reserved: list[Reserved] = []
        extensions: list[Extensions] = []
        while not self._take("}"):
            word = self._texts[self._at]
            if word == ";":
                self._at += 1
            elif word == "option":
                options.append(self._option_statement())
            elif word == "reserved":
                reserved.append(self._reserved(TAG_MAX, 1))
            elif word == "extensions":
                extensions.append(self._extensions())
            elif word == "extend":
                body.append(self._extend())
            elif word == "oneof":
                body.append(self._oneof())
            elif word in ("message", "enum") or self._modifies_a_type():
                body.append(self._type())
            elif self._kinds[self._at] == Kind.NAME or word == ".":
                body.append(self._field())
            else:
                self._fail("Expected a field, an option, a nested type or }")
        self._message_depth -= 1
        return Message(name, tuple(body), tuple(options), tuple(reserved), tuple(extensions), visibility, line)

    def _modifies_a_type(self) -> bool:
        return self._texts[self._at] in ("export", "local") and self._next() in ("message", "enum")

    def _field(self, in_oneof: bool = False) -> Field:
        line = self._here()
        label = None
        word = self._texts[self._at]
        if word in _LABELS:
            if in_oneof:
                self._fail("Fields of a oneof have no label")
            if word != "repeated" and self._edition is not None:
                self._fail(f"Editions have no label {word}; features.field_presence takes its place")
            if word == "required" and self._syntax == "proto3":
                self._fail("proto3 has no required fields")
            label = word
            self._at += 1
            word = self._texts[self._at]
        if word == "map" and self._next() == "<":
            if label:
                self._fail("A map field has no label")
            if in_oneof:
                self._fail("A oneof holds no map field")
            self._at += 2
            key = self._type_name()
            self._expect(",")
            value = self._type_name()
            self._expect(">")
            name = self._name()
            return self._field_end(None, value, name, key, line)
        if word == "group":
            return self._group(label, line, in_oneof)
        if label is None and not in_oneof and self._syntax != "proto3" and self._edition is None:
            self._fail("In proto2 a field begins with required, optional or repeated")
        type_name = self._type_name()
        return self._field_end(label, type_name, self._name(), None, line)

    def _field_end(self, label: str | None, type_name: str, name: str, key: str | None, line: int) -> Field:
        self._expect("=")
        number = self._integer(0, INT32_MAX)
        options = self._bracket_options()
        if len(options) > 1:
            # Confluent's canonical form puts them here, although they are not options of the descriptor.
            options = tuple(sorted(options, key=lambda one: {"default": 1, "json_name": 2}.get(one.spelled, 0)))
        self._expect(";")
        return Field(label, type_name, name, number, options, key, None, line)

    def _group(self, label: str | None, line: int, in_oneof: bool) -> Field:
        if self._syntax == "proto3" or self._edition is not None:
            self._fail("Groups exist in proto2 only")
        if label is None and not in_oneof:
            self._fail("In proto2 a group begins with required, optional or repeated")
        self._at += 1
        name = self._name()
        if not name[0].isupper():
            self._fail("The name of a group begins with a capital letter", self._at - 1)
        self._expect("=")
        number = self._integer(0, INT32_MAX)
        options = self._bracket_options()
        group = self._message_body(name, "", line)
        return Field(label, name, name.lower(), number, options, None, group, line)

    def _oneof(self) -> OneOf:
        line = self._here()
        self._at += 1
        name = self._name()
        self._expect("{")
        fields: list[Field] = []
        options: list[Option] = []
        while not self._take("}"):
            if self._texts[self._at] == "option":
                options.append(self._option_statement())
            else:
                fields.append(self._field(in_oneof=True))
        return OneOf(name, tuple(fields), tuple(options), line)

    def _extend(self) -> Extend:
        line = self._here()
        self._at += 1
        extendee = self._type_name()
        self._expect("{")
        fields: list[Field] = []
        while not self._take("}"):
            fields.append(self._field())
            if fields[-1].key_type is not None:
                self._fail("An extension cannot be a map field", self._at - 1)
        return Extend(extendee, tuple(fields), line)

    def _extensions(self) -> Extensions:
        line = self._here()
        self._at += 1
        ranges = [self._range(TAG_MAX, 1)]
        while self._take(","):
            ranges.append(self._range(TAG_MAX, 1))
        options = self._bracket_options()
        self._expect(";")
        return Extensions(tuple(ranges), options, line)

    def _reserved(self, highest: int, lowest: int) -> Reserved:
        line = self._here()
        self._at += 1
        values: list[Range | str] = []
        while True:
            kind = self._kinds[self._at]
            if kind == Kind.TEXT:
                at = self._at
                text = self._string().decode("utf-8", "replace")
                if self._edition is not None:
                    self._fail("In editions reserved names are written without quotes", at)
                values.append(text)
            elif kind == Kind.NAME and self._edition is not None:
                values.append(self._name())
            else:
                values.append(self._range(highest, lowest))
            if isinstance(values[0], str) != isinstance(values[-1], str):
                self._fail("One reserved statement holds numbers or names, not both", self._at - 1)
            if not self._take(","):
                break
        self._expect(";")
        return Reserved(tuple(values), self._edition is None, line)

    def _range(self, highest: int, lowest: int) -> Range:
        start = self._integer(lowest, INT32_MAX)
        if not self._take("to"):
            return Range(start, start, single=True)
        if self._take("max"):
            return Range(start, highest, single=False)
        return Range(start, self._integer(lowest, INT32_MAX), single=False)

    def _enum(self, visibility: str) -> Enum:
        line = self._here()
        self._at += 1
        name = self._name()
        self._expect("{")
        constants: list[EnumConstant] = []
        options: list[Option] = []
        reserved: list[Reserved] = []
        while not self._take("}"):
            if self._take(";"):
                continue
            word = self._texts[self._at]
            if word == "option":
                options.append(self._option_statement())
            elif word == "reserved":
                reserved.append(self._reserved(INT32_MAX, INT32_MIN))
            else:
                at = self._here()
                constant = self._name()
                self._expect("=")
                number = self._integer(INT32_MIN, INT32_MAX)
                constants.append(EnumConstant(constant, number, self._bracket_options(), at))
                self._expect(";")
        return Enum(name, tuple(constants), tuple(options), tuple(reserved), visibility, line)

    def _service(self) -> Service:
        line = self._here()
        self._at += 1
        name = self._name()
        self._expect("{")
        methods: list[Method] = []
        options: list[Option] = []
        while not self._take("}"):
            if self._take(";"):
                continue
            if self._texts[self._at] == "option":
                options.append(self._option_statement())
            elif self._texts[self._at] == "rpc":
                methods.append(self._method())
            else:
                self._fail("Expected rpc, option or }")
        return Service(name, tuple(methods), tuple(options), line)

    def _method(self) -> Method:
        line = self._here()
        self._at += 1
        name = self._name()
        input_streaming, input_type = self._method_type()
        self._expect("returns")
        output_streaming, output_type = self._method_type()
        options: list[Option] = []
        if self._take("{"):
            while not self._take("}"):
                if not self._take(";"):
                    if self._texts[self._at] != "option":
                        self._fail("Expected option or }")
                    options.append(self._option_statement())
        else:
            self._expect(";")
        return Method(name, input_type, output_type, input_streaming, output_streaming, tuple(options), line)

    def _method_type(self) -> tuple[bool, str]:
        self._expect("(")
        streaming = self._texts[self._at] == "stream" and self._next() != ")"
        if streaming:
            self._at += 1
        name = self._type_name()
        self._expect(")")
        return streaming, name
