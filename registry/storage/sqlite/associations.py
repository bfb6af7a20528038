"""Associations in the SQLite store: `registry.storage.base.AssociationWriter`."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from headgate.registry.associations import Association, AssociationType, Lifecycle
from headgate.registry.storage.sqlite.rows import Execute, Table
from headgate.registry.subjects import Subject

ASSOCIATIONS: Final = Table(
    "associations",
    "resource_id, resource_type, type, guid, resource_name, resource_namespace, context, subject, lifecycle, frozen, "
    "created_ms, updated_ms",
)


class SqliteAssociationReader:
    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def _found(self, where: str, parameters: Sequence[Any] = ()) -> list[Association]:
        rows = ASSOCIATIONS.rows(self._execute, where, parameters)
        return sorted((_association(row) for row in rows), key=lambda association: association.order)

    def of_subject(self, subject: Subject) -> list[Association]:
        return self._found("context = ? AND subject = ?", (subject.context, subject.name))

    def of_resource(self, resource_id: str, resource_type: str) -> list[Association]:
        return self._found("resource_id = ? AND resource_type = ?", (resource_id, resource_type))

    def of_resource_name(self, name: str, namespace: str | None, resource_type: str) -> list[Association]:
        if namespace is None:
            return self._found("resource_name = ? AND resource_type = ?", (name, resource_type))
        where = "resource_name = ? AND resource_namespace = ? AND resource_type = ?"
        return self._found(where, (name, namespace, resource_type))

    def walk(self) -> Iterator[Association]:
        order = "resource_name, resource_namespace, resource_type, type, resource_id"
        yield from map(_association, ASSOCIATIONS.rows(self._execute, "1", order=order))

    def count(self) -> int:
        return ASSOCIATIONS.count(self._execute)


class SqliteAssociationWriter(SqliteAssociationReader):
    def put(self, association: Association) -> None:
        ASSOCIATIONS.put(
            self._execute,
            (
                association.resource_id,
                association.resource_type,
                association.type.value,
                association.guid,
                association.resource_name,
                association.resource_namespace,
                association.subject.context,
                association.subject.name,
                association.lifecycle.value,
                int(association.frozen),
                association.created_ms,
                association.updated_ms,
            ),
        )

    def remove(self, association: Association) -> None:
        self._execute(
            "DELETE FROM associations WHERE resource_id = ? AND resource_type = ? AND type = ?",
            (association.resource_id, association.resource_type, association.type.value),
        )


def _association(row: tuple[Any, ...]) -> Association:
    resource_id, resource_type, type, guid, name, namespace, context, subject, lifecycle, frozen, created, updated = row
    return Association(
        guid=guid,
        resource_name=name,
        resource_namespace=namespace,
        resource_id=resource_id,
        resource_type=resource_type,
        type=AssociationType(type),
        subject=Subject(context, subject),
        lifecycle=Lifecycle(lifecycle),
        frozen=bool(frozen),
        created_ms=created,
        updated_ms=updated,
    )
