"""Large JSON bodies with an array of records: parsed record by record, in time slices.

A body of 60 MB takes more than a second to parse, and a JSON parser holds the interpreter lock all the while. Here the
body is only cut into records at once, which is ten times as fast; each record is then parsed by itself.
"""

from typing import Any, Final

import msgspec

from headgate.proxy.api.request_body import parse_json
from headgate.proxy.errors import BadRequest, InvalidPayload
from headgate.proxy.time_slicing import chunks

WHOLE_BYTES_MAX: Final = 256 * 1024
"""Bodies up to this size are parsed at once: that takes a few milliseconds."""
FIELD_BYTES_MAX: Final = 2 * 1024 * 1024
"""A field beside the records. The largest is a schema's text, of which a registry takes 1 MiB."""
ROW_EXPANSION_MAX: Final = 8
"""JSON text of a record per byte of it: `\\u00ff` is six characters for one byte, and there are names and quotes."""

_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ROWS: Final = msgspec.json.Decoder(list[msgspec.Raw])


async def parse_rows(body: bytes, field: str, record_bytes_max: int) -> Any:
    """As `parse_json`, for a body with an array of records in `field`.

    None for a large body that is no object, and for a `field` that is no array: callers refuse both.
    Raises BadRequest, InvalidPayload.
    """
    if len(body) <= WHOLE_BYTES_MAX:
        return parse_json(body)
    parsed: dict[str, Any] = {}
    for name, raw in (_decoded(_FIELDS, body) or {}).items():
        if name == field:
            parsed[name] = await _rows(raw, field, record_bytes_max * ROW_EXPANSION_MAX)
        elif len(memoryview(raw)) > FIELD_BYTES_MAX:
            raise BadRequest(f"The field {name[:100]} is over the limit of {FIELD_BYTES_MAX} bytes.")
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
                raise InvalidPayload(f"{field}[{index}] of {len(text)} bytes is over the limit of {row_bytes_max}.")
            rows.append(parse_json(text))
    return rows


def _decoded(decoder: Any, text: bytes | msgspec.Raw) -> Any:
    """None if the text is JSON of another shape."""
    try:
        return decoder.decode(text)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"The body is not JSON: {error}") from error
    except RecursionError:
        raise BadRequest("The body is not JSON: nested too deeply.") from None
