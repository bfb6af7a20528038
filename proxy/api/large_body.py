"""Large JSON bodies with an array of records: parsed record by record, in time slices.

Parsing a body of 60 MB takes more than a second, and the JSON parser holds the interpreter lock all the time. Splitting
the body into records is ten times as fast. Each record is then parsed separately.
"""

from typing import Any, Final

import msgspec

from headgate.kafka_client.time_slicing import chunks
from headgate.proxy.api.request_body import parse_json
from headgate.proxy.errors import BadRequest, InvalidPayload

WHOLE_BYTES_MAX: Final = 256 * 1024
"""Smaller bodies are parsed at once, which takes a few milliseconds."""
FIELD_BYTES_MAX: Final = 2 * 1024 * 1024
"""Size of a field other than the records. The largest one is a schema, which the registry limits to 1 MiB."""
ROW_EXPANSION_MAX: Final = 8
"""Characters of JSON per byte of a record. `\\u00ff` is six characters for one byte, plus names and quotes."""

_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ROWS: Final = msgspec.json.Decoder(list[msgspec.Raw])


async def parse_rows(body: bytes, field: str, record_bytes_max: int) -> Any:
    """As `parse_json`, for a body with an array of records in `field`.

    None if a large body is not an object or `field` is not an array. Callers reject both.
    Raises BadRequest, InvalidPayload.
    """
    if len(body) <= WHOLE_BYTES_MAX:
        return parse_json(body)
    parsed: dict[str, Any] = {}
    for name, raw in (_decoded(_FIELDS, body) or {}).items():
        if name == field:
            parsed[name] = await _rows(raw, field, record_bytes_max * ROW_EXPANSION_MAX)
        elif len(memoryview(raw)) > FIELD_BYTES_MAX:
            raise BadRequest(f"The field {name[:100]} is larger than the limit of {FIELD_BYTES_MAX} bytes.")
        else:
            parsed[name] = parse_json(bytes(raw))
    return parsed or None


async def _rows(raw: msgspec.Raw, field: str, row_bytes_max: int) -> list[Any] | None:
    found = _decoded(_ROWS, raw)
    if found is None:
        return None
    rows: list[Any] = []
    async for start, some in chunks(found):
        for index, row in enumerate(some, start):
            text = bytes(row)
            if len(text) > row_bytes_max:
                raise InvalidPayload(f"{field}[{index}] has {len(text)} bytes. The limit is {row_bytes_max} bytes.")
            rows.append(parse_json(text))
    return rows


def _decoded(decoder: Any, text: bytes | msgspec.Raw) -> Any:
    """None if the JSON has another type."""
    try:
        return decoder.decode(text)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"The body is not valid JSON: {error}") from error
    except RecursionError:
        raise BadRequest("The body is not valid JSON: nested too deeply.") from None
