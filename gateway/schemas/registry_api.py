"""Requests to the HTTP API of a schema registry, Headgate's or Confluent's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from headgate.registry import limits
from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.base import ParsedSchema
from headgate.registry.languages import Languages
from headgate.registry.model import Reference, SchemaType
from headgate.registry.subjects import Subject

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS: Final = 60.0
NOT_FOUND: Final = 404
CONFLICT: Final = 409
_PAGE: Final = 1000


class RegistryRefused(Exception):
    """The registry answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class StoredSchema:
    version: int
    schema: ParsedSchema


class RegistryApi:
    def __init__(self, client: "httpx.Client") -> None:
        self.client = client
        self.languages: Final = Languages()

    def ask(self, method: str, *path: str, **options: Any) -> Any:
        """The JSON of the response. Raises RegistryRefused, and httpx.TransportError."""
        answer = self.client.request(method, path_of(*path), **options)
        if not answer.is_success:
            raise refused(answer)
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise RegistryRefused(answer.status_code, "the response is not JSON; is this a schema registry?") from None

    def find(self, method: str, *path: str, **options: Any) -> Any:
        """Like `ask`, or None if it does not exist."""
        try:
            return self.ask(method, *path, **options)
        except RegistryRefused as error:
            if error.status != NOT_FOUND:
                raise
            return None

    def schemas(self, prefix: str, *, latest_only: bool, deleted: bool) -> Iterator[dict[str, Any]]:
        """All versions of the subjects with this prefix, page by page."""
        offset = 0
        while True:
            parameters = {
                "subjectPrefix": prefix,
                "latestOnly": str(latest_only).lower(),
                "deleted": str(deleted).lower(),
                "offset": str(offset),
                "limit": str(_PAGE),
            }
            page = self.ask("GET", "schemas", params=parameters)
            yield from page
            offset += len(page)
            if len(page) < _PAGE:
                return

    def stored(self, subject: str, version: str) -> StoredSchema:
        """A version with its references. Raises InvalidSchema."""
        found = self.ask("GET", "subjects", subject, "versions", version)
        kind = SchemaType(found.get("schemaType") or "AVRO")
        return StoredSchema(found["version"], self.parse(subject, kind, found["schema"], references_of(found)))

    def parse(self, subject: str, kind: SchemaType, text: str, references: Sequence[Reference]) -> ParsedSchema:
        """Parse a schema of `subject` with references to registered schemas. Raises InvalidSchema."""
        texts: dict[str, str] = {}
        self._follow(Subject.parse(subject), references, texts, ())
        return self.languages.parse(kind, text, texts, strict=False)

    def _follow(
        self, referrer: Subject, references: Sequence[Reference], texts: dict[str, str], chain: tuple[Subject, ...]
    ) -> None:
        """Add the texts of references, dependencies first."""
        if len(chain) > limits.REFERENCE_DEPTH_MAX or len(texts) > limits.REFERENCES_MAX:
            raise InvalidSchema("the schema has too many references")
        for one in references:
            if one.name not in texts:
                target = referrer.sibling(one.subject)
                path = ("subjects", target.qualified, "versions", str(one.version))
                found = self.ask("GET", *path, params={"deleted": "true"})
                self._follow(target, references_of(found), texts, (*chain, target))
                texts[one.name] = found["schema"]


def path_of(*parts: str) -> str:
    return "/" + "/".join(quote(part, safe=":.") for part in parts)


def references_of(found: dict[str, Any]) -> list[Reference]:
    return [Reference(one["name"], one["subject"], one["version"]) for one in found.get("references") or ()]


def refused(answer: "httpx.Response") -> RegistryRefused:
    try:
        message = str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        message = answer.text.strip()[:1000] or answer.reason_phrase
    return RegistryRefused(answer.status_code, message)
