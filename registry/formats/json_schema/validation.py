"""Validates values with `jsonschema`, with time limits for patterns and without network access.

`acceptance` is the fast path for valid values.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import jsonschema
import jsonschema.validators
from referencing import Registry, Resource
from referencing.exceptions import NoSuchResource, Unresolvable
from referencing.jsonschema import specification_with

from headgate.registry.formats.json_schema.acceptance import compiled
from headgate.registry.formats.json_schema.bounded import OWN, UNEVALUATED
from headgate.registry.formats.json_schema.document import compact
from headgate.registry.formats.json_schema.drafts import Draft
from headgate.registry.formats.json_schema.library import has_misplaced_anchor
from headgate.registry.formats.json_schema.patterns import TooCostly
from headgate.registry.formats.json_schema.subschema import Subschema, escaped, pointer_keys

# The first errors are enough to explain a value with thousands of errors.
FAULTS_MAX: Final = 100

# Messages quote the value, which may be large.
MESSAGE_CHARACTERS_MAX: Final = 1_000

_SPECIFICATIONS: Final = {
    Draft.DRAFT_4: "http://json-schema.org/draft-04/schema#",
    Draft.DRAFT_6: "http://json-schema.org/draft-06/schema#",
    Draft.DRAFT_7: "http://json-schema.org/draft-07/schema#",
    Draft.DRAFT_2019: "https://json-schema.org/draft/2019-09/schema",
    Draft.DRAFT_2020: "https://json-schema.org/draft/2020-12/schema",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One error in a value."""

    path: str
    """JSON pointer into the value; "" is the whole value."""
    message: str
    keyword: str
    """JSON pointer into the schema, to the violated keyword."""


class Validator:
    """A schema that is ready for validation. Safe to share between threads."""

    __slots__ = ("_surely_accepts", "_validator")

    def __init__(self, root: Subschema, references: Mapping[str, Any]) -> None:
        draft = root.draft
        specification = specification_with(_SPECIFICATIONS[draft])
        # The validators compute with floats. These do not mix with the exact numbers of the parsed document.
        documents = {name: json.loads(compact(document)) for name, document in references.items()}
        value = json.loads(compact(root.value))
        _standardize(root, {**documents, "": value})

        def retrieve(address: str) -> Resource[Any]:
            for name in (address, address.removeprefix("./")):
                if name in documents:
                    return Resource.from_contents(documents[name], default_specification=specification)
            for name, document in documents.items():
                if address.endswith("/" + name.removeprefix("./")):
                    return Resource.from_contents(document, default_specification=specification)
            raise cast(Any, NoSuchResource)(ref=address)

        registry: Registry[Any] = cast(Any, Registry)(retrieve=retrieve).with_resources(
            (name, Resource.from_contents(document, default_specification=specification))
            for name, document in documents.items()
        )
        cls = _CLASSES[draft]
        self._validator = cls(value, registry=registry)
        self._surely_accepts = compiled(root, value)

    def accepts(self, instance: object) -> bool:
        return next(self.faults(instance), None) is None

    def faults(self, instance: object) -> Iterator[Fault]:
        """The errors of a value (`dict`, `list`, `str`, numbers, `bool`, None), at most `FAULTS_MAX`."""
        if self._surely_accepts is not None and self._surely_accepts(instance):
            return
        try:
            for count, error in enumerate(self._validator.iter_errors(instance)):
                if count == FAULTS_MAX:
                    return
                keyword = "".join(f"/{escaped(str(key))}" for key in error.absolute_schema_path)
                path = "".join(f"/{escaped(str(key))}" for key in error.absolute_path)
                yield Fault(path, error.message[:MESSAGE_CHARACTERS_MAX], keyword)
        except RecursionError:
            yield Fault("", "is nested too deeply to be validated", "")
        except TooCostly as error:
            yield Fault("", f"the pattern {error} takes too long to match", "")
        except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
            # The value is not JSON, for example because a key is not a string, or a number is too large.
            yield Fault("", f"cannot be validated: {error}"[:MESSAGE_CHARACTERS_MAX], "")
        except Unresolvable as error:
            yield Fault("", f"the schema refers to what is not there: {error}", "")


def _standardize(root: Subschema, documents: Mapping[str, Any]) -> None:
    """Rewrite references and anchors that only `library` resolves, in copies of the documents."""
    reached = {root}
    queue = [root]
    for node in queue:
        if node.document in documents and (node.standard_references or has_misplaced_anchor(node)):
            place = documents[node.document]
            for key in pointer_keys(node.path):
                place = place[int(key)] if isinstance(place, list) else place[key]
            place |= node.standard_references or {}
            if has_misplaced_anchor(node):
                del place["$id"]
        for other in (*node.all_children(), *node.targets):
            if other not in reached:
                reached.add(other)
                queue.append(other)


_CLASSES: Mapping[Draft, Any] = {
    draft: cast(Any, jsonschema.validators).extend(base, OWN | (UNEVALUATED if draft >= Draft.DRAFT_2019 else {}))
    for draft, base in {
        Draft.DRAFT_4: jsonschema.Draft4Validator,
        Draft.DRAFT_6: jsonschema.Draft6Validator,
        Draft.DRAFT_7: jsonschema.Draft7Validator,
        Draft.DRAFT_2019: jsonschema.Draft201909Validator,
        Draft.DRAFT_2020: jsonschema.Draft202012Validator,
    }.items()
}
