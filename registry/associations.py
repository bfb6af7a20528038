"""Associations: the subjects of the key and value schemas of a resource, such as a topic.

Field names and rules follow Confluent's associations API.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from headgate.registry.subjects import Subject

TOPIC: Final = "topic"
"""The only resource type."""
ANY_NAMESPACE: Final = "-"
"""A lookup by name with this namespace searches all namespaces."""


class AssociationType(StrEnum):
    KEY = "key"
    VALUE = "value"


class Lifecycle(StrEnum):
    STRONG = "STRONG"
    """The subject belongs to this resource only. Deleting the resource may delete it."""
    WEAK = "WEAK"
    """Several resources may share the subject."""


@dataclass(frozen=True, slots=True)
class Resource:
    """The resource of a request. Only a dry run may omit the id."""

    name: str
    namespace: str
    id: str | None
    type: str = TOPIC

    def default_subject(self, type: AssociationType) -> Subject:
        """The subject of an association that names none. Its context has the name of the namespace."""
        return Subject(f".{self.namespace}", f"{self.name}-{type}")


@dataclass(frozen=True, slots=True)
class Association:
    guid: str
    resource_name: str
    resource_namespace: str
    resource_id: str
    resource_type: str
    type: AssociationType
    subject: Subject
    lifecycle: Lifecycle
    frozen: bool
    created_ms: int
    updated_ms: int

    @property
    def order(self) -> tuple[str, str, str, str, str]:
        return self.resource_name, self.resource_namespace, self.resource_type, self.type, self.subject.qualified

    def to_json(self) -> dict[str, Any]:
        return {
            "subject": self.subject.qualified,
            "guid": self.guid,
            "resourceName": self.resource_name,
            "resourceNamespace": self.resource_namespace,
            "resourceId": self.resource_id,
            "resourceType": self.resource_type,
            "associationType": self.type,
            "lifecycle": self.lifecycle,
            "frozen": self.frozen,
            "createTs": self.created_ms,
            "updateTs": self.updated_ms,
        }
