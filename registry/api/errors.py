"""Which HTTP status and error code each fault becomes: the one table, with Confluent's numbers."""

from typing import Final

from headgate.registry import errors
from headgate.registry.errors import RegistryError

_TABLE: Final[dict[type[RegistryError], tuple[int, int]]] = {
    errors.SubjectNotFound: (404, 40401),
    errors.VersionNotFound: (404, 40402),
    errors.SchemaNotFound: (404, 40403),
    errors.SubjectSoftDeleted: (404, 40404),
    errors.SubjectNotSoftDeleted: (404, 40405),
    errors.VersionSoftDeleted: (404, 40406),
    errors.VersionNotSoftDeleted: (404, 40407),
    errors.CompatibilityNotConfigured: (404, 40408),
    errors.ModeNotConfigured: (404, 40409),
    errors.AssociationNotFound: (404, 40410),
    errors.KeyNotFound: (404, 40470),
    errors.KeyNotSoftDeleted: (404, 40471),
    errors.KeySoftDeleted: (404, 40472),
    errors.NotFound: (404, 404),
    errors.TooManyAssociations: (409, 40902),
    errors.ResourceAssociated: (409, 40903),
    errors.SubjectAssociated: (409, 40904),
    errors.SubjectStronglyAssociated: (409, 40905),
    errors.NoActiveVersion: (409, 40907),
    errors.AssociationFrozen: (409, 40908),
    errors.KeyExists: (409, 40971),
    errors.TooManyKeys: (409, 40972),
    errors.Conflict: (409, 409),
    errors.IncompatibleSchema: (409, 409),
    errors.InvalidSchema: (422, 42201),
    errors.InvalidVersion: (422, 42202),
    errors.InvalidCompatibilityLevel: (422, 42203),
    errors.InvalidMode: (422, 42204),
    errors.OperationNotPermitted: (422, 42205),
    errors.ReferenceExists: (422, 42206),
    errors.IdDoesNotMatch: (422, 42207),
    errors.InvalidSubject: (422, 42208),
    errors.SchemaTooLarge: (422, 42209),
    errors.InvalidRuleSet: (422, 42210),
    errors.ContextNotEmpty: (422, 42211),
    errors.InvalidAssociation: (422, 42212),
    errors.AssociationBatchTooLarge: (422, 42213),
    errors.InvalidKey: (422, 42271),
    errors.KeyInUse: (422, 42272),
    errors.Unprocessable: (422, 422),
    errors.DekGenerationFailed: (500, 50070),
    errors.StoreFailed: (500, 50001),
    errors.StoreTimedOut: (500, 50002),
}


def status_and_code(error: RegistryError, *, detailed_conflict: bool) -> tuple[int, int]:
    """Of the error's own class, or of the nearest above it."""
    if detailed_conflict and isinstance(error, errors.IncompatibleSchema):
        return 409, 40901
    for kind in type(error).__mro__:
        found = _TABLE.get(kind)
        if found is not None:
            return found
    return 500, 500


class HttpFault(Exception):
    """A request that is wrong before the registry is asked: not JSON, no such route, a parameter out of range."""

    def __init__(self, status: int, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = status if code is None else code
        # After a 408, the rest of the body would be read as the next request.
        self.headers = ((b"connection", b"close"),) if status == 408 else ()


REASONS: Final = {
    400: "HTTP 400 Bad Request",
    404: "HTTP 404 Not Found",
    405: "HTTP 405 Method Not Allowed",
    406: "HTTP 406 Not Acceptable",
    415: "HTTP 415 Unsupported Media Type",
    500: "Internal Server Error",
}
"""The sentences of the framework that Confluent's registry runs on."""
