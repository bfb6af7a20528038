"""One typed error per fault of the registry. Which HTTP status and code each becomes is `registry.api`'s table."""


class RegistryError(Exception):
    """The root: its text is meant for the person who made the request."""


class InvalidSchema(RegistryError):
    """The text is not a schema of its language.

    `path` names the place inside the schema (JSON pointer style, or `message.field` for Protobuf), "" for the whole.
    """

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{reason} (at {path})" if path else reason)
        self.reason = reason
        self.path = path
