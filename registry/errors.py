"""One typed error per fault of the registry. Which HTTP status and code each becomes is `registry.api`'s table.

    RegistryError
    ├── NotFound
    │   ├── SubjectNotFound, VersionNotFound, SchemaNotFound
    │   ├── SubjectSoftDeleted, SubjectNotSoftDeleted, VersionSoftDeleted, VersionNotSoftDeleted
    │   └── CompatibilityNotConfigured, ModeNotConfigured
    ├── IncompatibleSchema
    ├── Unprocessable
    │   ├── InvalidSchema, InvalidVersion, InvalidCompatibilityLevel, InvalidMode, InvalidSubject, InvalidRuleSet
    │   └── OperationNotPermitted, ReferenceExists, IdDoesNotMatch, SchemaTooLarge, ContextNotEmpty
    ├── TakesLonger
    └── StoreFailed, StoreTimedOut

The sentences are Confluent's, to the letter: scripts and test suites match on them.
"""

from collections.abc import Sequence


class RegistryError(Exception):
    """The root: its text is meant for the person who made the request."""


class NotFound(RegistryError):
    """What was asked for is not there, or not in the state it must be in."""


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


class IncompatibleSchema(RegistryError):
    """The schema would break readers or writers of an earlier one."""

    def __init__(self, subject: str, details: Sequence[str]) -> None:
        super().__init__(
            f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
            f"details: [{', '.join(details)}]"
        )
        self.details = tuple(details)


class Unprocessable(RegistryError):
    """Understood, and refused."""


class InvalidSchema(Unprocessable):
    """The text is not a schema of its language.

    `path` names the place inside the schema (JSON pointer style, or `message.field` for Protobuf), "" for the whole.
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
    def __init__(self) -> None:
        super().__init__(
            "Invalid compatibility level. Valid values are none, backward, forward, full, "
            "backward_transitive, forward_transitive, and full_transitive"
        )


class InvalidMode(Unprocessable):
    def __init__(self) -> None:
        super().__init__("Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, and FORWARD")


class InvalidSubject(Unprocessable):
    def __init__(self, subject: str) -> None:
        super().__init__(f"The specified subject '{subject}' is not a valid subject.")


class InvalidRuleSet(Unprocessable):
    """A rule set that is malformed; the text says which rule and why."""


class OperationNotPermitted(Unprocessable):
    """The mode, or what is stored already, forbids it."""


class ReferenceExists(Unprocessable):
    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            "One or more references exist to the schema "
            f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}."
        )


class IdDoesNotMatch(Unprocessable):
    """An explicit id contradicts the id that the schema has."""


class SchemaTooLarge(Unprocessable):
    def __init__(self, chars: int, chars_max: int) -> None:
        super().__init__(f"The schema has {chars} characters; at most {chars_max} are accepted")


class ContextNotEmpty(Unprocessable):
    def __init__(self, context: str) -> None:
        super().__init__(f"The specified context '{context}' is not empty.")


class TakesLonger(RegistryError):
    """Not refused: the work is more than was granted. Whoever granted it asks again with more."""


class StoreFailed(RegistryError):
    """The store did not take or give the data; nothing was changed."""


class StoreTimedOut(RegistryError):
    """The store did not answer in time; whether the change was made is unknown."""
