"""The response of the ACL APIs on a broker without an authorizer."""

from kio.schema.errors import ErrorCode

from headgate.broker.protocol.entities import Answer

SECURITY_DISABLED: Answer = {
    "error_code": ErrorCode.security_disabled,
    "error_message": "No Authorizer is configured.",
}
