"""One typed error per fault of the registry. `registry.api.errors` maps them to HTTP status and error code.

    RegistryError
    ├── NotFound
    │   ├── SubjectNotFound, VersionNotFound, SchemaNotFound
    │   ├── SubjectSoftDeleted, SubjectNotSoftDeleted, VersionSoftDeleted, VersionNotSoftDeleted
    │   ├── CompatibilityNotConfigured, ModeNotConfigured
    │   ├── KeyNotFound, KeyNotSoftDeleted, KeySoftDeleted
    │   └── AssociationNotFound
    ├── IncompatibleSchema
    ├── Conflict
    │   ├── KeyExists, TooManyKeys
    │   ├── ResourceAssociated, SubjectAssociated, SubjectStronglyAssociated, TooManyAssociations
    │   └── NoActiveVersion, AssociationFrozen
    ├── Unprocessable
    │   ├── InvalidSchema, InvalidVersion, InvalidCompatibilityLevel, InvalidMode, InvalidSubject, InvalidRuleSet
    │   ├── OperationNotPermitted, ReferenceExists, IdDoesNotMatch, SchemaTooLarge, ContextNotEmpty
    │   └── InvalidKey, KeyInUse, InvalidAssociation, AssociationBatchTooLarge
    ├── DekGenerationFailed
    ├── WorkLimitExceeded
    └── StoreFailed (DamagedRow), StoreTimedOut

The messages equal Confluent's, because scripts and test suites match on them.
"""

from collections.abc import Sequence
from typing import Final


class RegistryError(Exception):
    """The root of all errors. The message is for the author of the request."""


class NotFound(RegistryError):
    """The requested object does not exist, or is not in the required state."""


class SubjectNotFound(NotFound):
    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' not found.")


class VersionNotFound(NotFound):
    def __init__(self, version: int) -> None:
        super().__init__(f"Version {version} not found.")


class SchemaNotFound(NotFound):
    def __init__(self, identity: int | str | None = None) -> None:
        super().__init__("Schema not found" if identity is None else f"Schema {identity} not found")


class SubjectSoftDeleted(NotFound):
    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


class SubjectNotSoftDeleted(NotFound):
    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' was not deleted first before being permanently deleted")


class VersionSoftDeleted(NotFound):
    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
        )


class VersionNotSoftDeleted(NotFound):
    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
        )


class CompatibilityNotConfigured(NotFound):
    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' does not have subject-level compatibility configured")


class ModeNotConfigured(NotFound):
    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' does not have subject-level mode configured")


class KeyNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"Key '{name}' not found")


class KeyNotSoftDeleted(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"Key '{name}' was not deleted first before being permanently deleted")


class KeySoftDeleted(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"Key '{name}' must be undeleted first")


class AssociationNotFound(NotFound):
    def __init__(self, resource: str) -> None:
        super().__init__(f"Association for '{resource}' not found.")


class Conflict(RegistryError):
    """The request conflicts with stored data."""


class KeyExists(Conflict):
    def __init__(self, name: str) -> None:
        super().__init__(f"Key '{name}' already exists; use a different value")


class TooManyKeys(Conflict):
    def __init__(self, keys_max: int) -> None:
        super().__init__(f"A maximum of {keys_max} keys already exist")


class ResourceAssociated(Conflict):
    def __init__(self, type: str, resource: str) -> None:
        super().__init__(f"An association of type '{type}' already exists for resource '{resource}'")


class SubjectAssociated(Conflict):
    def __init__(self, subject: str) -> None:
        super().__init__(f"An association already exists for subject '{subject}'")


class SubjectStronglyAssociated(Conflict):
    def __init__(self, subject: str) -> None:
        super().__init__(f"A strong association already exists for subject '{subject}'")


class TooManyAssociations(Conflict):
    def __init__(self, associations_max: int) -> None:
        super().__init__(f"A maximum of {associations_max} associations already exist")


class NoActiveVersion(Conflict):
    def __init__(self, subject: str) -> None:
        super().__init__(f"No active (non-deleted) version exists for subject '{subject}'")


class AssociationFrozen(Conflict):
    def __init__(self, type: str, subject: str) -> None:
        super().__init__(f"The association of type  '{type}' is frozen for subject '{subject}'")


class IncompatibleSchema(RegistryError):
    """The schema breaks readers or writers of an earlier schema."""

    def __init__(self, subject: str, details: Sequence[str]) -> None:
        super().__init__(
            f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
            f"details: [{', '.join(details)}]"
        )
        self.details = tuple(details)


class Unprocessable(RegistryError):
    """The request is well-formed, but not accepted."""


class InvalidSchema(Unprocessable):
    """The text is not a valid schema.

    `path` is the position inside the schema: a JSON pointer, or `message.field` for Protobuf. "" is the whole schema.
    """

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{reason} (at {path})" if path else reason)
        self.reason = reason
        self.path = path


class InvalidVersion(Unprocessable):
    def __init__(self, version: str) -> None:
        super().__init__(
            f"The specified version '{version}' is not a valid version id. "
            'Allowed values are between [1, 2^31-1] and the string "latest"'
        )


class InvalidCompatibilityLevel(Unprocessable):
    def __init__(self, message: str | None = None) -> None:
        super().__init__(
            message
            or "Invalid compatibility level. Valid values are none, backward, forward, full, "
            "backward_transitive, forward_transitive, and full_transitive"
        )


class InvalidMode(Unprocessable):
    def __init__(self) -> None:
        super().__init__("Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, and FORWARD")


class InvalidSubject(Unprocessable):
    def __init__(self, subject: str) -> None:
        super().__init__(f"The specified subject '{subject}' is not a valid subject.")


class InvalidRuleSet(Unprocessable):
    """The rule set is malformed. The message contains the rule and the problem."""


class OperationNotPermitted(Unprocessable):
    """The mode or stored data forbids the operation."""


class ReferenceExists(Unprocessable):
    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            "One or more references exist to the schema "
            f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}."
        )


class IdDoesNotMatch(Unprocessable):
    """The explicit id differs from the id of the schema."""


class SchemaTooLarge(Unprocessable):
    def __init__(self, chars: int, chars_max: int) -> None:
        super().__init__(f"The schema has {chars} characters; at most {chars_max} are accepted")


class ContextNotEmpty(Unprocessable):
    def __init__(self, context: str) -> None:
        super().__init__(f"The specified context '{context}' is not empty.")


class InvalidKey(Unprocessable):
    def __init__(self, field: str) -> None:
        super().__init__(f"Invalid or missing value for field '{field}' of key")


class KeyInUse(Unprocessable):
    def __init__(self, name: str) -> None:
        super().__init__(f"One or more references exist to the key {name}")


class InvalidAssociation(Unprocessable):
    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"The association specified an invalid value for property: '{name}', reason: {reason}")


class AssociationBatchTooLarge(Unprocessable):
    def __init__(self, requests_max: int) -> None:
        super().__init__(f"Associations request exceeded a limit: at most {requests_max} resources in one batch")


class DekGenerationFailed(RegistryError):
    """A shared KEK requires a KMS driver, and the registry has none."""


class WorkLimitExceeded(RegistryError):
    """The work exceeds the given limits. The caller repeats it with higher limits."""


class StoreFailed(RegistryError):
    """The store could not read or write. Nothing was changed."""


class DamagedRow(StoreFailed):
    """A stored row does not match its checksum. The registry does not return it."""

    def __init__(self, table: str, values: Sequence[object]) -> None:
        named = ", ".join(repr(value)[:_VALUE_CHARS_MAX] for value in values[:3])
        super().__init__(
            f"A row of the table '{table}' in the registry's file is damaged: ({named}) does not match its checksum. "
            'Other rows are not affected. See "Damaged files" in the registry\'s documentation'
        )


_VALUE_CHARS_MAX: Final = 100


class StoreTimedOut(RegistryError):
    """The store did not respond in time. The change may or may not have been made."""
