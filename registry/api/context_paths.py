"""Context prefixes in paths: `/contexts/x/subjects/s` becomes `/subjects/:.x:s`.

Confluent's registry accepts the prefix on every route. Routes without a subject get the context as a query parameter.
"""

from urllib.parse import parse_qsl, quote, unquote, urlencode

from headgate.registry.api.errors import HttpError
from headgate.registry.errors import InvalidSubject
from headgate.registry.subjects import context_prefix


def rewritten(raw_path: bytes, query: bytes) -> tuple[str, bytes]:
    """Path and query without a context prefix. The context moves into the subject or into a query parameter."""
    path = raw_path.decode("latin-1")
    if not path.isascii():
        path = quote(path, safe="/%:", encoding="latin-1")
    path = path.rstrip("/") or "/"
    if path.endswith("/referencedBy"):
        path = path.removesuffix("By") + "by"  # The spelling of Redpanda's registry.
    if not path.startswith("/contexts/"):
        return path, query
    parts = path.split("/")[2:]
    if len(parts) == 1:
        return path, query
    try:
        prefix = context_prefix(unquote(parts[0]))
    except InvalidSubject:
        raise HttpError(400, "Context name cannot contain a colon") from None
    if parts[1] == "contexts":
        return rewritten(("/" + "/".join(parts[1:])).encode(), query)
    return _in_context(prefix, parts[1:]), _query_in_context(prefix, parts[1:], query)


def _qualified(prefix: str, name: str) -> str:
    return name if unquote(name).startswith((":.", ":*:")) else quote(prefix, safe="") + name


def _in_context(prefix: str, parts: list[str]) -> str:
    if parts[0] in ("config", "mode"):
        if len(parts) > 1:
            parts = [parts[0], _qualified(prefix, parts[1]), *parts[2:]]
        elif prefix:
            parts = [parts[0], quote(prefix, safe="")]
        return "/" + "/".join(parts)
    for index, part in enumerate(parts[:-1]):
        if part == "subjects" or (parts[0] == "dek-registry" and index == 4):
            parts = [*parts[: index + 1], _qualified(prefix, parts[index + 1]), *parts[index + 2 :]]
            break
    return "/" + "/".join(parts)


def _query_in_context(prefix: str, parts: list[str], query: bytes) -> bytes:
    if parts[:2] == ["schemas", "ids"]:
        name = "subject"
    elif parts in (["schemas"], ["subjects"], ["search"], ["export"]):
        name = "subjectPrefix"
    elif parts[0].startswith("associations"):
        name = "context"
    else:
        return query
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    given = next((value for key, value in pairs if key == name), "")
    if name == "context":
        given = prefix
    elif not given.startswith((":.", ":*:")):
        given = prefix + given
    kept = [(key, value) for key, value in pairs if key != name]
    return urlencode([*kept, (name, given)]).encode()
