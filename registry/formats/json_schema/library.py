"""Splits documents into subschemas, indexes their addresses and resolves references.

Follows the identification rules of the drafts: `$id` (`id` in draft-04) sets the base URI, `$anchor` names a position,
and JSON pointers (RFC 6901) address any position. No URI is fetched: a target must be in the schema, in a registry
reference or in a published meta-schema.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote, urldefrag, urljoin

import jsonschema_specifications
from referencing.exceptions import NoSuchResource

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.json_schema.drafts import Draft, declared
from headgate.registry.formats.json_schema.keywords import KEYWORDS, Holds, complaint
from headgate.registry.formats.json_schema.subschema import Subschema, escaped, pointer_keys

# A text of 10 MB can contain millions of `{}`. Real schemas have far fewer subschemas.
SUBSCHEMAS_MAX: Final = 200_000

# Total of all distinct patterns. Compiling takes about 10 microseconds per character.
PATTERNS_CHARACTERS_MAX: Final = 100_000

_REFERENCES: dict[Draft, tuple[str, ...]] = dict.fromkeys(Draft, ("$ref",)) | {
    Draft.DRAFT_2019: ("$ref", "$recursiveRef"),
    Draft.DRAFT_2020: ("$ref", "$dynamicRef"),
}


class Library:
    """All documents of one schema during parsing."""

    def __init__(self, draft: Draft, strict: bool) -> None:
        self._strict = strict
        self._draft = draft
        self._documents: dict[str, Any] = {}
        self._names: dict[str, Subschema] = {}
        self._resources: dict[str, Subschema] = {}
        self._anchors: dict[tuple[str, str], Subschema] = {}
        self._places: dict[tuple[str, str], Subschema] = {}
        self._unresolved: list[Subschema] = []
        self._patterns: set[str] = set()
        self._patterns_characters = 0

    def add(self, name: str, value: Any, base: str) -> Subschema:
        """Split a document into subschemas. `resolve` resolves the references later."""
        if not isinstance(value, (dict, bool)):
            raise InvalidSchema("a schema is an object or a boolean", f"{name}#" if name else "/")
        self._documents[name] = value
        root = self._take_apart(value, declared(value) or self._draft, base, name, "")
        self._resources.setdefault(base, root)
        if name:
            self._names[name] = root
        return root

    def resolve(self) -> None:
        """Resolve all references. This also adds subschemas that only a pointer reaches."""
        while self._unresolved:
            node = self._unresolved.pop()
            for keyword in _REFERENCES[node.draft]:
                if keyword in node.value:
                    node.targets.append(self._target(node, keyword, node.value[keyword]))
        self._refuse_endless_references()

    def _take_apart(self, value: Any, draft: Draft, base: str, document: str, path: str) -> Subschema:
        root = Subschema(value, draft, base, document, path)
        todo = [root]
        while todo:
            node = todo.pop()
            if len(self._places) >= SUBSCHEMAS_MAX:
                raise InvalidSchema(f"contains more than {SUBSCHEMAS_MAX} subschemas", node.place())
            self._places[node.document, node.path] = node
            if isinstance(node.value, dict):
                self._identify(node)
                self._count_patterns(node)
                if (fault := complaint(node.value, node.draft, strict=self._strict)) is not None:
                    keyword, words = fault
                    raise InvalidSchema(f"{keyword} {words}", node.place(keyword))
                if any(keyword in node.value for keyword in _REFERENCES[node.draft]):
                    self._unresolved.append(node)
                todo.extend(_divide(node))
        return root

    def _count_patterns(self, node: Subschema) -> None:
        own, by_pattern = node.value.get("pattern"), node.value.get("patternProperties")
        for pattern in (own, *(by_pattern if isinstance(by_pattern, dict) else ())):
            if isinstance(pattern, str) and pattern not in self._patterns:
                self._patterns.add(pattern)
                self._patterns_characters += len(pattern)
        if self._patterns_characters > PATTERNS_CHARACTERS_MAX:
            raise InvalidSchema(f"its patterns have more than {PATTERNS_CHARACTERS_MAX} characters", node.place())

    def _identify(self, node: Subschema) -> None:
        value = node.value
        own = value.get(node.draft.id_keyword)
        if isinstance(own, str) and not (node.draft.reference_stands_alone and "$ref" in value):
            if own.startswith("#"):
                self._anchors[node.base, own[1:]] = node
            else:
                node.draft = declared(value) or node.draft
                node.base = urldefrag(self._joined(node, own)).url
                self._resources[node.base] = node
        for keyword in ("$anchor", "$dynamicAnchor"):
            if keyword in KEYWORDS[node.draft] and isinstance(value.get(keyword), str):
                self._anchors[node.base, value[keyword]] = node

    def _joined(self, node: Subschema, address: str) -> str:
        try:
            return urljoin(node.base, address)
        except ValueError as error:
            raise InvalidSchema(f"not a valid URI: {address[:200]!r} ({error})", node.place()) from None

    def _target(self, node: Subschema, keyword: str, reference: str) -> Subschema:
        place = node.place(keyword)
        if reference.startswith("#"):
            address, fragment = node.base, reference[1:]
        else:
            address, fragment = urldefrag(self._joined(node, reference))
        resource = self._resource(address, reference)
        if resource is None:
            raise InvalidSchema(f"the reference {reference[:200]!r} cannot be resolved", place)
        fragment = unquote(fragment)
        if not fragment:
            return resource
        pointer: str | None = None
        if not fragment.startswith("/"):
            found = self._anchors.get((resource.base, fragment))
            if found is not None and has_misplaced_anchor(found):
                pointer = found.path.removeprefix(resource.path)
        else:
            found = self._at_pointer(resource, fragment)
            if found is None:
                pointer = _other_spelling(fragment)
                found = self._at_pointer(resource, pointer)
        if found is None:
            raise InvalidSchema(f"the target of the reference {reference[:200]!r} is not a schema", place)
        if pointer is not None:
            node.standard_references = (node.standard_references or {}) | {
                keyword: f"{reference.partition('#')[0]}#{quote(pointer)}"
            }
        return found

    def _resource(self, address: str, reference: str) -> Subschema | None:
        plain = reference.partition("#")[0]
        for name in (plain, plain.removeprefix("./"), reference, unquote(plain)):
            if name in self._names and address not in self._resources:
                return self._names[name]
        if address in self._resources:
            return self._resources[address]
        try:
            published = jsonschema_specifications.REGISTRY.contents(address)
        except NoSuchResource:
            return None
        return self.add(address, published, address)

    def _at_pointer(self, resource: Subschema, pointer: str) -> Subschema | None:
        path = resource.path + "".join(f"/{escaped(key)}" for key in pointer_keys(pointer))
        if (known := self._places.get((resource.document, path))) is not None:
            return known
        value = resource.value
        base, draft = resource.base, resource.draft
        walked = resource.path
        for key in pointer_keys(pointer):
            walked += f"/{escaped(key)}"
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif isinstance(value, list) and key.isascii() and key.isdecimal() and int(key[:9]) < len(value):
                value = value[int(key[:9])]
            else:
                return None
            if (passed := self._places.get((resource.document, walked))) is not None:
                base, draft = passed.base, passed.draft
        if not isinstance(value, (dict, bool)):
            return None
        return self._take_apart(value, draft, base, resource.document, path)

    def _refuse_endless_references(self) -> None:
        """Reject a schema that applies itself to the same value: validation would never end."""
        done: set[Subschema] = set()
        for start in list(self._places.values()):
            if start in done:
                continue
            open_nodes: dict[Subschema, Iterator[Subschema]] = {start: start.in_place()}
            while open_nodes:
                node, following = next(reversed(open_nodes.items()))
                for child in following:
                    if child in open_nodes:
                        raise InvalidSchema("refers to itself endlessly", node.place())
                    if child not in done:
                        open_nodes[child] = child.in_place()
                        break
                else:
                    del open_nodes[node]
                    done.add(node)


def _divide(node: Subschema) -> Iterator[Subschema]:
    """Create the children of a node, keyword by keyword."""
    table = KEYWORDS[node.draft]
    for name, content in node.value.items():
        keyword = table.get(name)
        if keyword is None or keyword.holds is Holds.NOTHING:
            continue
        prefix = f"{node.path}/{escaped(name)}"
        if isinstance(content, list):
            items = [_below(node, each, f"{prefix}/{index}") for index, each in enumerate(content)]
            node.children[name] = items
            yield from items
        elif isinstance(content, dict) and keyword.holds in (Holds.SCHEMA_MAP, Holds.DEPENDENCIES):
            # A dependency may be a list of names instead of a schema.
            members = {
                key: _below(node, each, f"{prefix}/{escaped(key)}")
                for key, each in content.items()
                if isinstance(each, (dict, bool))
            }
            node.children[name] = members
            yield from members.values()
        else:
            only = _below(node, content, prefix)
            node.children[name] = only
            yield only


def _below(node: Subschema, value: Any, path: str) -> Subschema:
    return Subschema(value, node.draft, node.base, node.document, path)


def has_misplaced_anchor(node: Subschema) -> bool:
    """Whether `$id` is a fragment. Up to draft-07 this is an anchor; since 2019-09 it is not allowed."""
    own = node.value.get("$id") if isinstance(node.value, dict) else None
    return node.draft >= Draft.DRAFT_2019 and isinstance(own, str) and own.startswith("#")


def _other_spelling(pointer: str) -> str:
    """2019-09 renamed `definitions` to `$defs`. Kafka Connect's converters mix both names."""
    for one, other in (("/$defs/", "/definitions/"), ("/definitions/", "/$defs/")):
        if pointer.startswith(one):
            return other + pointer.removeprefix(one)
    return pointer


def assemble(value: Any, references: Mapping[str, Any], draft: Draft, *, strict: bool = True) -> Subschema:
    """The schema with all its targets. `references` contains parsed documents by reference name."""
    library = Library(draft, strict)
    root = library.add("", value, "")
    for name, referenced in references.items():
        try:
            base = urldefrag(urljoin(root.base, name)).url
        except ValueError:
            base = name
        library.add(name, referenced, base)
    library.resolve()
    return root
