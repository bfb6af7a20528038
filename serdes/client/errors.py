"""The errors of the registry client.

RegistryClientError
├── UnknownSchema        the registry responded: no such schema, subject or version
├── RequestRefused       the registry responded: not compatible, not valid or not allowed
└── RegistryUnavailable  no response, or not from a schema registry
    └── RegistryUnreachable  no response from any address in all attempts
"""


class RegistryClientError(Exception):
    """The root of all errors. The message is for the operator of the program."""


class UnknownSchema(RegistryClientError):
    pass


class RequestRefused(RegistryClientError):
    def __init__(self, status: int, error_code: int, message: str) -> None:
        super().__init__(status, error_code, message)
        self.status = status
        self.error_code = error_code
        self.message = message

    def __str__(self) -> str:
        return f"the registry refused ({self.error_code}): {self.message}"


class RegistryUnavailable(RegistryClientError):
    pass


class RegistryUnreachable(RegistryUnavailable):
    """Concerns all requests, so the client sends no requests for a while."""
