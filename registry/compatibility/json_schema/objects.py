"""Compares objects: properties and content models.

The content model describes names without a property schema:

- *Open*: all names are allowed.
- *Closed*: no name is allowed.
- *Partially open*: a schema or patterns decide.

An added property is checked against the writer's model, a removed property against the reader's model.
"""

from headgate.registry.compatibility.json_schema.comparison import PairComparison
from headgate.registry.compatibility.json_schema.kinds import Difference
from headgate.registry.compatibility.json_schema.scalars import compare_limits, difference_of
from headgate.registry.compatibility.json_schema.shapes import Kind, Shape
from headgate.registry.formats.json_schema.drafts import Draft
from headgate.registry.formats.json_schema.subschema import Subschema


def compare_objects(pair: PairComparison, original: Shape, update: Shape) -> None:
    _compare_required(pair, original, update)
    _compare_properties(pair, original, update)
    _compare_dependencies(pair, original, update)
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        compare_rest(pair, keyword, original.source.one(keyword), update.source.one(keyword))
    compare_limits(pair, original, update, "maxProperties", "minProperties")


def compare_rest(pair: PairComparison, keyword: str, original: Subschema | None, update: Subschema | None) -> None:
    """The keywords for other names: `additional…` and `unevaluated…`. Absent means that everything is allowed."""
    after = pair.shapes.of(update) if update is not None else None
    if update is None or after is None or after.kind is Kind.EMPTY:
        return
    before = pair.shapes.of(original) if original is not None else None
    if before is not None and before.kind is Kind.FALSE:
        return
    written = original.value if original is not None else None
    if after.kind is Kind.FALSE:
        pair.difference(difference_of(keyword, "REMOVED"), f"/{keyword}", written, False)
    elif original is None or before is None or before.kind is Kind.EMPTY:
        pair.difference(difference_of(keyword, "NARROWED"), f"/{keyword}", written, update.value)
    else:
        pair.compare(f"/{keyword}", original, update)


def is_open(pair: PairComparison, rest: Subschema | None, unevaluated: Subschema | None) -> bool:
    deciding = rest if rest is not None else unevaluated
    return deciding is None or pair.shapes.of(deciding).kind is Kind.EMPTY


def covering(pair: PairComparison, rest: Subschema | None, unevaluated: Subschema | None) -> Subschema | None:
    """The schema for other names. None if it is absent or false."""
    deciding = rest if rest is not None else unevaluated
    if deciding is None or deciding.value is True or pair.shapes.of(deciding).kind is Kind.FALSE:
        return None
    return deciding


def _model(shape: Shape) -> tuple[Subschema | None, Subschema | None]:
    return shape.source.one("additionalProperties"), shape.source.one("unevaluatedProperties")


def _is_open_object(pair: PairComparison, shape: Shape) -> bool:
    return not shape.source.named("patternProperties") and is_open(pair, *_model(shape))


def _covering_schema(pair: PairComparison, shape: Shape, name: str) -> Subschema | None:
    for pattern, schema in shape.source.named("patternProperties").items():
        if pair.matches(pattern, name):
            return schema
    return covering(pair, *_model(shape))


def _compare_required(pair: PairComparison, original: Shape, update: Shape) -> None:
    """Names without a schema on both sides are not compared, as in Confluent's registry."""
    before, after = original.source.named("properties"), update.source.named("properties")
    were, are = set(original.get("required") or ()), update.get("required") or ()
    pair.effort += (len(were) + len(are)) // 10
    for name in are:
        if name in before and name in after and name not in were and not _has_default(after[name]):
            pair.difference(Difference.REQUIRED_ATTRIBUTE_ADDED, f"/required/{name}", None, name)


def _compare_properties(pair: PairComparison, original: Shape, update: Shape) -> None:
    before, after = original.source.named("properties"), update.source.named("properties")
    pair.effort += (len(before) + len(after)) // 4
    for name, schema in before.items():
        if name in after:
            pair.compare(f"/properties/{name}", schema, after[name])
        else:
            _compare_removed(pair, update, name, schema)
    required = set(update.get("required") or ())
    for name, schema in after.items():
        if name not in before:
            _compare_added(pair, original, name, schema, required=name in required)


def _compare_removed(pair: PairComparison, update: Shape, name: str, schema: Subschema) -> None:
    if not _is_open_object(pair, update):
        compare_removed(pair, "property", f"/properties/{name}", schema, _covering_schema(pair, update, name))


def compare_removed(pair: PairComparison, what: str, path: str, schema: Subschema, cover: Subschema | None) -> None:
    """Compare a removed property or item with the reader's schema for other names, if it has one."""
    if cover is not None:
        if not pair.compare(path, schema, cover):
            kind = difference_of(what, "REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
            pair.difference(kind, path, schema.value, cover.value)
    elif pair.shapes.of(schema).kind is not Kind.FALSE:
        pair.difference(difference_of(what, "REMOVED_FROM_CLOSED_CONTENT_MODEL"), path, schema.value, None)


def compare_added(pair: PairComparison, what: str, path: str, schema: Subschema, cover: Subschema | None) -> None:
    """Compare an added property or item with the writer's schema for other names, if it has one."""
    if cover is not None and not pair.compare(path, cover, schema):
        kind = difference_of(what, "ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
        pair.difference(kind, path, cover.value, schema.value)


def _compare_added(pair: PairComparison, original: Shape, name: str, schema: Subschema, *, required: bool) -> None:
    path = f"/properties/{name}"
    demanded = required and not _has_default(schema)
    if _is_open_object(pair, original):
        if demanded:
            kind = Difference.REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL
        elif pair.shapes.of(schema).kind is Kind.EMPTY:
            return
        elif required:
            kind = Difference.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL
        else:
            kind = Difference.OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL
        pair.difference(kind, path, None, schema.value)
        return
    compare_added(pair, "property", path, schema, _covering_schema(pair, original, name))
    if demanded:
        kind = Difference.REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL
        pair.difference(kind, path, None, schema.value)


def _has_default(schema: Subschema) -> bool:
    return isinstance(schema.value, dict) and "default" in schema.value


def _compare_dependencies(pair: PairComparison, original: Shape, update: Shape) -> None:
    before, after = _needed_names(original), _needed_names(update)
    pair.effort += sum(map(len, before.values())) + sum(map(len, after.values()))
    for name, needed in after.items():
        path = f"/dependencies/{name}"
        if name not in before:
            pair.difference(Difference.DEPENDENCY_ARRAY_ADDED, path, None, sorted(needed))
        elif not needed <= before[name]:
            kind = (
                Difference.DEPENDENCY_ARRAY_EXTENDED if needed >= before[name] else Difference.DEPENDENCY_ARRAY_CHANGED
            )
            pair.difference(kind, path, sorted(before[name]), sorted(needed))
    schemas = _dependent_schemas(original)
    for name, schema in _dependent_schemas(update).items():
        path = f"/dependencies/{name}"
        if name in schemas:
            pair.compare(path, schemas[name], schema)
        else:
            pair.difference(Difference.DEPENDENCY_SCHEMA_ADDED, path, None, schema.value)


def _needed_names(shape: Shape) -> dict[str, set[str]]:
    keyword = "dependencies" if shape.source.draft <= Draft.DRAFT_7 else "dependentRequired"
    return {name: set(needed) for name, needed in (shape.get(keyword) or {}).items() if isinstance(needed, list)}


def _dependent_schemas(shape: Shape) -> dict[str, Subschema]:
    keyword = "dependencies" if shape.source.draft <= Draft.DRAFT_7 else "dependentSchemas"
    return shape.source.named(keyword)
