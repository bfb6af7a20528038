"""HTTP status and error code of each exception: the codes of Confluent's Schema Registry."""

from typing import Final

from headgate.registry import errors
from headgate.web.errors import ErrorStatus, ErrorTable

ERROR_TABLE: Final = ErrorTable(
    {
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
)


class HttpError(Exception):
    """The request is invalid before the registry handles it: not JSON, no such route, a parameter out of range."""

    def __init__(self, status: int, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = status if code is None else code

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        # After a 408, the server would parse the rest of the body as the next request.
        return ((b"connection", b"close"),) if self.status == 408 else ()


def status_of(error: Exception, *, detailed_conflict: bool) -> ErrorStatus:
    """`detailed_conflict` selects error code 40901 instead of 409 for incompatible schemas."""
    if isinstance(error, HttpError):
        return ErrorStatus(error.status, error.code)
    if detailed_conflict and isinstance(error, errors.IncompatibleSchema):
        return ErrorStatus(409, 40901)
    return ERROR_TABLE.status_of(error)


def headers_of(error: Exception) -> tuple[tuple[bytes, bytes], ...]:
    return error.headers if isinstance(error, HttpError) else ()
