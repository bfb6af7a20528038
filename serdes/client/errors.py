"""What can go wrong between a client and a registry.

RegistryClientError
├── UnknownSchema        the registry answered: there is no such schema, subject or version
├── RequestRefused       the registry answered: no (not compatible, not valid, not allowed)
└── RegistryUnavailable  no answer, or not one of a registry
    └── RegistryUnreachable  none from any address, in all the attempts
"""


class RegistryClientError(Exception):
    """The root; the text is meant for the person who runs the program."""


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
    """Not the fault of one question, so no other is asked either for a while."""
