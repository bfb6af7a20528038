"""Values of requests at their limits: names, numbers and sizes."""

from types import SimpleNamespace
from typing import Any

import pytest

from headgate.registry import limits
from headgate.registry.associations import AssociationType, Lifecycle, Resource
from headgate.registry.encryption_keys import DEFAULT_ALGORITHM, Algorithm, Kek
from headgate.registry.errors import (
    InvalidAssociation,
    InvalidKey,
    InvalidVersion,
    SubjectStronglyAssociated,
    TooManyAssociations,
    TooManyKeys,
    WorkLimitExceeded,
)
from headgate.registry.model import Content, Reference, SchemaType
from headgate.registry.service import associations, encryption_keys
from headgate.registry.service.associations import Draft, Selected, checked_draft, checked_resource
from headgate.registry.service.compatibility_check import WorkLimits
from headgate.registry.service.schema_queries import LATEST, version_number
from headgate.registry.storage.base import StoredVersion
from headgate.registry.subjects import Subject


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1),
        (" 7 ", 7),
        ("007", 7),
        ("2147483647", 2**31 - 1),
        ("latest", LATEST),
        ("LATEST", LATEST),
        ("-1", LATEST),
        ("0", None),
        ("-2", None),
        ("2147483648", None),
        ("9" * 5000, None),
        ("1" + "0" * 19, None),
        ("²", None),
        ("٣", None),
        ("1.0", None),
        ("", None),
        ("newest", None),
    ],
)
def test_a_version_is_a_positive_number_or_latest(text: str, number: int | None) -> None:
    if number is None:
        with pytest.raises(InvalidVersion):
            version_number(text)
    else:
        assert version_number(text) == number


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({}, None),
        ({"name": "x" * limits.RESOURCE_CHARS_MAX}, None),
        ({"name": "x" * (limits.RESOURCE_CHARS_MAX + 1)}, "resourceName"),
        ({"name": "Ä٣_-."}, None),
        ({"name": "a/b"}, "resourceName"),
        ({"name": "½"}, "resourceName"),
        ({"name": ""}, "resourceName"),
        ({"namespace": "x" * limits.RESOURCE_CHARS_MAX}, None),
        ({"namespace": "x" * (limits.RESOURCE_CHARS_MAX + 1)}, "resourceNamespace"),
        ({"namespace": None}, "resourceNamespace"),
        ({"id": "x" * limits.RESOURCE_ID_CHARS_MAX}, None),
        ({"id": "x" * (limits.RESOURCE_ID_CHARS_MAX + 1)}, "resourceId"),
        ({"id": "x" * (limits.RESOURCE_ID_CHARS_MAX + 1), "dry_run": True}, "resourceId"),
        ({"id": ""}, "resourceId"),
        ({"id": "", "dry_run": True}, None),
        ({"type": "topic"}, None),
        ({"type": "table"}, "resourceType"),
    ],
)
def test_a_resource_is_checked(changed: dict[str, Any], field: str | None) -> None:
    values: dict[str, Any] = {"name": "n", "namespace": "ns", "id": "i", "type": None, "dry_run": False, **changed}
    if field is None:
        resource = checked_resource(**values)
        assert (resource.name, resource.namespace, resource.id) == (
            values["name"],
            values["namespace"],
            values["id"] or None,
        )
    else:
        with pytest.raises(InvalidAssociation, match=f"'{field}'"):
            checked_resource(**values)


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        ("s", None),
        ("x" * limits.SUBJECT_CHARS_MAX, None),
        ("x" * (limits.SUBJECT_CHARS_MAX + 1), "exceeds max length"),
        ("", "must not be empty"),
        ("a\n", "must not be empty"),
    ],
)
def test_the_subject_of_an_association_is_checked(subject: str, reason: str | None) -> None:
    draft = Draft(AssociationType.VALUE, subject)
    resource = Resource("n", "ns", "i")
    if reason is None:
        assert checked_draft(resource, draft, create_only=True).subject == subject
    else:
        with pytest.raises(InvalidAssociation, match=reason):
            checked_draft(resource, draft, create_only=True)


def test_an_association_has_defaults() -> None:
    resource = Resource("n", "ns", "i")
    created = checked_draft(resource, Draft(AssociationType.KEY, "s"), create_only=True)
    assert (created.lifecycle, created.frozen) == (Lifecycle.WEAK, None)
    changed = checked_draft(resource, Draft(AssociationType.KEY, "s"), create_only=False)
    assert (changed.lifecycle, changed.frozen) == (None, None)
    default = checked_draft(resource, Draft(AssociationType.KEY, lifecycle=Lifecycle.STRONG), create_only=True)
    assert default.subject == ":.ns:n-key"


def one(lifecycle: Lifecycle = Lifecycle.WEAK, kind: str = "value", resource_type: str = "topic") -> Any:
    return SimpleNamespace(lifecycle=lifecycle, type=kind, resource_type=resource_type)


def test_associations_are_selected_by_type_and_lifecycle() -> None:
    found: Any = [one(), one(Lifecycle.STRONG, "key"), one(resource_type="table")]
    assert Selected().of(found) == found[:2]
    assert Selected(types=("key",)).of(found) == [found[1]]
    assert Selected(types=("key", "value"), lifecycle=Lifecycle.WEAK).of(found) == [found[0]]
    assert Selected("table").of(found) == [found[2]]
    assert Selected(types=("value",), lifecycle=Lifecycle.STRONG).of(found) == []


@pytest.mark.parametrize(
    ("lifecycles", "is_exclusive"),
    [
        ([], True),
        ([Lifecycle.STRONG], True),
        ([Lifecycle.WEAK, Lifecycle.WEAK], True),
        ([Lifecycle.WEAK, Lifecycle.STRONG], False),
        ([Lifecycle.STRONG, Lifecycle.STRONG], False),
    ],
)
def test_a_strong_association_is_the_only_one_of_its_subject(lifecycles: list[Lifecycle], is_exclusive: bool) -> None:
    store: Any = SimpleNamespace(
        associations=SimpleNamespace(of_subject=lambda subject: [one(lifecycle) for lifecycle in lifecycles])
    )
    if is_exclusive:
        associations.check_exclusive(store, Subject.parse("s"))
    else:
        with pytest.raises(SubjectStronglyAssociated):
            associations.check_exclusive(store, Subject.parse("s"))


@pytest.mark.parametrize("count", [1, 2])
def test_the_number_of_associations_and_keys_is_limited(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    for name in ("ASSOCIATIONS_MAX", "KEKS_MAX", "DEKS_MAX"):
        monkeypatch.setattr(limits, name, 2)
    store: Any = SimpleNamespace(associations=SimpleNamespace(count=lambda: count))
    keys: Any = SimpleNamespace(kek_count=lambda: count, dek_count=lambda: count)
    for check, holder, error in (
        (associations.check_count, store, TooManyAssociations),
        (encryption_keys.check_kek_count, keys, TooManyKeys),
        (encryption_keys.check_dek_count, keys, TooManyKeys),
    ):
        if count < 2:
            check(holder)
        else:
            with pytest.raises(error):
                check(holder)


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [
        ("a", True),
        ("_", True),
        ("ä9_-", True),
        ("x" * limits.KEY_NAME_CHARS_MAX, True),
        ("x" * (limits.KEY_NAME_CHARS_MAX + 1), False),
        ("9a", False),
        ("-a", False),
        ("a.b", False),
        ("", False),
        (None, False),
    ],
)
def test_the_name_of_a_key_is_checked(name: str | None, is_valid: bool) -> None:
    if is_valid:
        assert encryption_keys.checked_name(name) == name
    else:
        with pytest.raises(InvalidKey, match="name"):
            encryption_keys.checked_name(name)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("s", "s"),
        (":.:s", "s"),
        (":.c:s", ":.c:s"),
        ("x" * limits.SUBJECT_CHARS_MAX, "x" * limits.SUBJECT_CHARS_MAX),
        ("x" * (limits.SUBJECT_CHARS_MAX + 1), None),
        ("a\x7f", None),
        ("", None),
        (None, None),
    ],
)
def test_the_subject_of_a_key_is_checked(text: str | None, subject: str | None) -> None:
    if subject is None:
        with pytest.raises(InvalidKey, match="subject"):
            encryption_keys.checked_subject(text)
    else:
        assert encryption_keys.checked_subject(text) == subject


def test_versions_and_algorithms_of_keys_are_checked() -> None:
    assert [encryption_keys.checked_version(version) for version in (1, 2**31 - 1)] == [1, 2**31 - 1]
    for version in (0, -1, 2**31):
        with pytest.raises(InvalidVersion):
            encryption_keys.checked_version(version)
    assert encryption_keys.algorithm_named(None) is encryption_keys.algorithm_named("") is DEFAULT_ALGORITHM
    for algorithm in Algorithm:
        assert encryption_keys.algorithm_named(algorithm.value) is algorithm
    with pytest.raises(InvalidKey, match="algorithm"):
        encryption_keys.algorithm_named("ROT13")


@pytest.mark.parametrize(("extra", "is_valid"), [(0, True), (1, False)])
def test_the_size_of_a_key_includes_all_its_texts(monkeypatch: pytest.MonkeyPatch, extra: int, is_valid: bool) -> None:
    monkeypatch.setattr(limits, "KEK_CHARS_MAX", 20)
    kek = Kek("k", "type", "id", {"ab": "cdef"}, shared=False, changed_ms=0, doc="doc45678" + "x" * extra)
    if is_valid:
        encryption_keys.check_kek(kek)
    else:
        with pytest.raises(InvalidKey, match="doc"):
            encryption_keys.check_kek(kek)


@pytest.mark.parametrize(
    ("size", "has_references", "is_quick"), [(10, False, True), (11, False, False), (1, True, False)]
)
def test_long_schemas_are_not_compared_on_the_event_loop(size: int, has_references: bool, is_quick: bool) -> None:
    references = (Reference("r", "s", 1),) if has_references else ()
    content = Content(SchemaType.AVRO, "x" * size, references, None, None)
    stored = StoredVersion(Subject.parse("s"), 3, 1, content, b"", 0)
    work = WorkLimits(versions_max=1, chars_max=10, steps_max=1)
    if is_quick:
        work.check(stored)
    else:
        with pytest.raises(WorkLimitExceeded, match="Version 3"):
            work.check(stored)
