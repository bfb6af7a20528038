"""Repairs the values of letters before they are re-driven: with another schema, with a jq program, or both.

| given | new value |
|---|---|
| schema | the same body with the id of the schema, if the schema can read it |
| patch | the value as JSON, changed by the jq program, encoded with its own schema; without a schema, JSON text |
| both | as with a patch, encoded with the given schema |
"""

from dataclasses import dataclass

from headgate.proxy.dead_letters.jq_patch import JqPatch
from headgate.proxy.dead_letters.letter import StoredLetter
from headgate.proxy.errors import ProxyError
from headgate.proxy.formats import SchemaChoice
from headgate.proxy.reading.formats import Formats, ReadFormat
from headgate.proxy.reading.payloads import Payloads
from headgate.proxy.schemas import SchemaEncoders
from headgate.serdes import AsyncDeserializer, AsyncRegistryClient, EncodeError, Poison, RedriveRefused
from headgate.serdes.framing import Frame, frame, unframe_record
from headgate.serdes.json_text import loads


@dataclass(frozen=True, slots=True)
class ValueSchema:
    """An id, or the latest version of a subject."""

    schema_id: int | None = None
    subject: str | None = None


class Repairs:
    def __init__(
        self,
        registry: AsyncRegistryClient,
        schema: ValueSchema | None,
        patch: JqPatch | None,
        *,
        native_logical: bool = False,
    ) -> None:
        self._schema = schema
        self._patch = patch
        self._native_logical = native_logical
        self._deserializer = AsyncDeserializer(registry)
        self._payloads = Payloads(registry)
        self._encoders = SchemaEncoders(registry, subject_checked=False)

    async def __call__(self, stored: StoredLetter) -> bytes | None:
        """The new value. Raises RedriveRefused."""
        value = stored.record.value
        if value is None:
            raise RedriveRefused("the letter has no value to repair")
        if stored.letter.is_truncated:
            raise RedriveRefused("the letter does not contain the complete value")
        try:
            if self._patch is not None:
                return await self._patched(stored, value, self._patch)
            return await self._with_schema(stored, value)
        except (ProxyError, EncodeError) as error:
            raise RedriveRefused(str(error)) from error

    async def _with_schema(self, stored: StoredLetter, value: bytes) -> bytes:
        given = unframe_record(value, stored.letter.origin.headers, False)
        body = given.body if isinstance(given, Frame) else value
        encoder = await self._encoders.find(None, self._choice(stored))
        framed = frame(encoder.schema_id, body)
        outcome = await self._deserializer.decode(framed)
        if isinstance(outcome, Poison):
            raise RedriveRefused(
                f"schema {encoder.schema_id} cannot read the value: {outcome.reason.name}, {outcome.detail[:300]}"
            )
        return framed

    async def _patched(self, stored: StoredLetter, value: bytes, patch: JqPatch) -> bytes | None:
        headers = stored.letter.origin.headers
        given = unframe_record(value, headers, False)
        if isinstance(given, Poison):
            text = value  # Without a schema id: the program reports a value that is not JSON.
        else:
            sides = self._payloads.sides(Formats(ReadFormat.AUTO, ReadFormat.AUTO, self._native_logical))
            render = sides.both[1].bare()
            rendered = render(value, headers)
            if await sides.look_up():
                rendered = render(value, headers)
            if isinstance(rendered, Poison):
                raise RedriveRefused(
                    f"the value cannot be patched, because it cannot be decoded: {rendered.reason.name}, "
                    f"{rendered.detail[:300]}"
                )
            text = rendered
        patched = await patch.apply(text)
        if self._schema is None and isinstance(given, Poison):
            return patched
        schema_id = given.schema_id if self._schema is None and isinstance(given, Frame) else None
        if self._schema is None and schema_id is None:
            raise RedriveRefused("the schema id of the value is in a header; choose a schema")
        encoder = await self._encoders.find(None, self._choice(stored, schema_id))
        return encoder.encode(loads(patched))

    def _choice(self, stored: StoredLetter, schema_id: int | None = None) -> SchemaChoice:
        topic = stored.letter.origin.topic
        chosen = self._schema or ValueSchema(schema_id)
        return SchemaChoice(
            chosen.schema_id,
            None,
            None,
            chosen.subject or f"{topic}-value",
            topic=topic,
            native_logical=self._native_logical,
        )
