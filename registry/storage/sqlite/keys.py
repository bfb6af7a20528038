"""Encryption keys in the SQLite store: `registry.storage.base.KeyWriter`."""

from typing import Any, Final

import orjson

from headgate.registry.encryption_keys import Algorithm, Dek, Kek
from headgate.registry.storage.sqlite.rows import Execute, Table

KEKS: Final = Table("keks", "name, kms_type, kms_key_id, kms_props, doc, shared, deleted, changed_ms")
DEKS: Final = Table("deks", "kek, subject, algorithm, version, encrypted_key_material, deleted, changed_ms")
_DEK_ORDER: Final = "kek, subject, algorithm, version"


class SqliteKeyReader:
    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def kek(self, name: str) -> Kek | None:
        return next((_kek(row) for row in KEKS.rows(self._execute, "name = ?", (name,))), None)

    def keks(self) -> list[Kek]:
        return [_kek(row) for row in KEKS.rows(self._execute, "1", order="name")]

    def kek_count(self) -> int:
        return KEKS.count(self._execute)

    def dek(self, kek: str, subject: str, algorithm: Algorithm, version: int) -> Dek | None:
        where = "kek = ? AND subject = ? AND algorithm = ? AND version = ?"
        rows = DEKS.rows(self._execute, where, (kek, subject, algorithm.value, version))
        return next((_dek(row) for row in rows), None)

    def deks(self, kek: str) -> list[Dek]:
        return [_dek(row) for row in DEKS.rows(self._execute, "kek = ?", (kek,), _DEK_ORDER)]

    def has_deks(self, kek: str, *, deleted: bool) -> bool:
        live = "" if deleted else " AND deleted = 0"
        return bool(self._execute(f"SELECT EXISTS (SELECT 1 FROM deks WHERE kek = ?{live})", (kek,)).fetchone()[0])

    def deks_of_subject(self, kek: str, subject: str, algorithm: Algorithm) -> list[Dek]:
        where = "kek = ? AND subject = ? AND algorithm = ?"
        rows = DEKS.rows(self._execute, where, (kek, subject, algorithm.value), "version")
        return [_dek(row) for row in rows]

    def all_deks(self) -> list[Dek]:
        return [_dek(row) for row in DEKS.rows(self._execute, "1", order=_DEK_ORDER)]

    def dek_count(self) -> int:
        return DEKS.count(self._execute)


class SqliteKeyWriter(SqliteKeyReader):
    def put_kek(self, kek: Kek) -> None:
        KEKS.put(
            self._execute,
            (
                kek.name,
                kek.kms_type,
                kek.kms_key_id,
                orjson.dumps(dict(kek.kms_props), option=orjson.OPT_SORT_KEYS).decode(),
                kek.doc,
                int(kek.shared),
                int(kek.deleted),
                kek.changed_ms,
            ),
        )

    def remove_kek(self, name: str) -> None:
        self._execute("DELETE FROM keks WHERE name = ?", (name,))

    def put_dek(self, dek: Dek) -> None:
        DEKS.put(
            self._execute,
            (
                dek.kek,
                dek.subject,
                dek.algorithm.value,
                dek.version,
                dek.encrypted_key_material,
                int(dek.deleted),
                dek.changed_ms,
            ),
        )

    def remove_dek(self, dek: Dek) -> None:
        self._execute(
            "DELETE FROM deks WHERE kek = ? AND subject = ? AND algorithm = ? AND version = ?",
            (dek.kek, dek.subject, dek.algorithm.value, dek.version),
        )


def _kek(row: tuple[Any, ...]) -> Kek:
    name, kms_type, kms_key_id, kms_props, doc, shared, deleted, changed_ms = row
    return Kek(name, kms_type, kms_key_id, orjson.loads(kms_props), bool(shared), changed_ms, doc, bool(deleted))


def _dek(row: tuple[Any, ...]) -> Dek:
    kek, subject, algorithm, version, material, deleted, changed_ms = row
    return Dek(kek, subject, version, Algorithm(algorithm), material, changed_ms, bool(deleted))
