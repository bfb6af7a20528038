"""A folder of schema files with its manifest, parsed and in the order of references."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath

from headgate.gateway.schemas.files import Files, FolderFiles
from headgate.gateway.schemas.manifest import LANGUAGES, NAME, Declared, InvalidManifest, parse_manifest
from headgate.registry import limits
from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.base import ParsedSchema
from headgate.registry.languages import Languages


@dataclass(frozen=True, slots=True)
class LocalSchema:
    declared: Declared
    schema: ParsedSchema | None
    """None if the file is invalid."""
    problem: str = ""


def load_folder(files: Files, languages: Languages) -> list[LocalSchema]:
    """All schemas of the manifest, referenced ones first. Raises InvalidManifest."""
    manifest = files.read([NAME])[NAME]
    if isinstance(manifest, str):
        raise InvalidManifest(f"{NAME} {manifest}")
    declared = {one.subject: one for one in parse_manifest(manifest)}
    try:
        order = list(TopologicalSorter({n: one.references.values() for n, one in declared.items()}).static_order())
    except CycleError as error:
        raise InvalidManifest(f"{NAME}: references form a cycle: {' → '.join(error.args[1])}") from None
    contents = files.read(dict.fromkeys(one.file for one in declared.values()))
    loaded: dict[str, LocalSchema] = {}
    texts: dict[str, dict[str, str]] = {}
    """By subject: the text of the schema and of its references, by the names that it uses; its own is ""."""
    for subject in order:
        one = declared[subject]
        loaded[subject], texts[subject] = _loaded(one, contents[one.file], loaded, texts, languages)
    return list(loaded.values())


def _loaded(
    one: Declared,
    content: bytes | str,
    loaded: Mapping[str, LocalSchema],
    texts: Mapping[str, dict[str, str]],
    languages: Languages,
) -> tuple[LocalSchema, dict[str, str]]:
    invalid = [target for target in one.references.values() if loaded[target].problem]
    if invalid:
        return LocalSchema(one, None, f"the referenced subject {invalid[0]} is invalid"), {}
    if isinstance(content, str):
        return LocalSchema(one, None, f"{one.file} {content}"), {}
    references: dict[str, str] = {}
    for name, target in one.references.items():
        own = texts[target]
        references |= {inner: text for inner, text in own.items() if inner and inner not in references}
        references[name] = own[""]
    if len(references) > limits.REFERENCES_MAX:
        return LocalSchema(one, None, f"{one.file} has more than {limits.REFERENCES_MAX} references"), {}
    try:
        text = content.decode("utf-8")
        return LocalSchema(one, languages.parse(one.type, text, references)), {**references, "": text}
    except UnicodeDecodeError as error:
        return LocalSchema(one, None, f"{one.file} is not UTF-8, at byte {error.start}"), {}
    except InvalidSchema as error:
        return LocalSchema(one, None, f"{one.file}: {error}"), {}


def unlisted(files: FolderFiles, schemas: list[LocalSchema]) -> Iterator[str]:
    """Schema files that the manifest does not contain. Other JSON files count only beside a listed JSON Schema."""
    listed = {PurePosixPath(one.declared.file) for one in schemas}
    json_folders = {path.parent for path in listed if path.suffix == ".json"}
    for path in sorted(map(PurePosixPath, files.walk())):
        if path not in listed and path.suffix in LANGUAGES and (path.suffix != ".json" or path.parent in json_folders):
            yield str(path)
