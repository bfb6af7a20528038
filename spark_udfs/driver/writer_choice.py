"""Choose the schema that `to_registry_avro` writes with, on the driver: register it, look it up or fetch it."""

from dataclasses import dataclass

from headgate.serdes import InvalidSchema, SchemaDefinition
from headgate.serdes.avro import parse
from headgate.serdes.client import RegistryClient, RegistryClientError, RegistryUnavailable
from headgate.serdes.rules import RulesNotExecuted, check_writable
from headgate.serdes.schemas import RegisteredSchema, avro_schema
from headgate.spark_udfs.driver.reader_choice import RegistryNotReady, unavailable_message
from headgate.spark_udfs.executor.encoding import EncodingError
from headgate.spark_udfs.spec.reader import SchemaText
from headgate.spark_udfs.spec.registry_options import RegistryOptions


@dataclass(frozen=True, slots=True)
class WriterChoice:
    """A schema to register or look up, or an existing one: a version, a schema id, or the latest version."""

    subject: str
    schema: str | SchemaDefinition | None = None
    version: int | None = None
    schema_id: int | None = None
    register: bool = True
    normalize: bool = False

    def resolve(self, options: RegistryOptions) -> tuple[SchemaText, int]:
        """The schema and its id. Raises `EncodingError` or `RegistryNotReady` with the message of the registry."""
        with options.client() as client:
            try:
                found = self._found(client)
                check_writable(client.rules_of(found), found.id)
                text = SchemaText.fetch(client, found)
            except RegistryUnavailable as error:
                raise RegistryNotReady(unavailable_message(client, error)) from error
            except (RegistryClientError, RulesNotExecuted) as error:
                raise EncodingError(f"{self.subject}: {error}") from error
        if text.language != "AVRO" or found.id is None:
            raise EncodingError(f"{self.subject}: {text.language} cannot be encoded from columns; only Avro can")
        try:
            parse(text.text, dict(text.references))
        except InvalidSchema as error:
            raise EncodingError(f"{self.subject}: {error}") from error
        return text, found.id

    def _found(self, client: RegistryClient) -> RegisteredSchema:
        if sum(given is not None for given in (self.schema, self.version, self.schema_id)) > 1:
            raise EncodingError("schema, version and schema_id are mutually exclusive")
        if self.schema is None:
            if self.schema_id is not None:
                return client.schema_by_id(self.schema_id)
            return client.latest(self.subject) if self.version is None else client.version(self.subject, self.version)
        given = avro_schema(self.schema) if isinstance(self.schema, str) else self.schema
        if self.register:
            return client.register(self.subject, given, normalize=self.normalize)
        return client.lookup(self.subject, given, normalize=self.normalize)
