"""Compiled code: keyed, verified, compiled once, and replaced by plain Python until it is ready."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from pyarrow import lib as pa

from headgate.serdes.avro import parse
from headgate.serdes.columnar import (
    Adaptive,
    Batch,
    ColumnarDecoder,
    ColumnarEncoder,
    Compiled,
    Engine,
    FixedSchemas,
    Plain,
    project,
)
from headgate.serdes.columnar import engine as engines
from headgate.serdes.columnar.kernels import decode_rows, encode_rows
from headgate.serdes.columnar.native import code_key, code_store, library
from headgate.serdes.columnar.native.compile_process import main as compile_kernels
from headgate.serdes.columnar.native.library import LIBRARY, CodeLibrary, NotCompiled
from headgate.serdes.columnar.native.signatures import SIGNATURES
from headgate.serdes.outcome import Reason
from tests.unit.columnar.agreement import payloads_of, round_of

KERNEL = "make_text"
"""The kernel that compiles fastest."""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store."""
    directory = tmp_path / "store"
    directory.mkdir(mode=0o755)
    monkeypatch.setenv(code_store.DIRECTORY_VARIABLE, str(directory))
    return directory


def stored(directory: Path, code: bytes = b"some code") -> Path:
    code_store.write_sealed(directory, KERNEL, code_store.seal(KERNEL, code))
    assert code_store.read_sealed(KERNEL) == code_store.seal(KERNEL, code)
    (path,) = directory.iterdir()
    return path


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def link_from_elsewhere(path: Path) -> None:
    path.symlink_to(path.rename(path.parent.parent / "elsewhere"))


def replace_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


UNUSABLE: dict[str, Callable[[Path], object]] = {
    "damaged": damage,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "empty": lambda path: path.write_bytes(b""),
    "writable by the group": lambda path: path.chmod(0o664),
    "writable by all": lambda path: path.chmod(0o646),
    "in a directory that is writable by all": lambda path: path.parent.chmod(0o777),
    "a symbolic link": link_from_elsewhere,
    "a pipe": replace_by_a_pipe,
}


@pytest.mark.parametrize("spoil", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_code_that_is_damaged_or_writable_by_others_is_ignored(store: Path, spoil: Callable[[Path], object]) -> None:
    spoil(stored(store))
    assert code_store.read_sealed(KERNEL) is None


def test_code_of_another_user_is_ignored(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(store)
    monkeypatch.setattr(code_store, "ROOT", 4711)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert code_store.read_sealed(KERNEL) is None


def test_code_of_another_version_or_kernel_is_ignored(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(store)
    sealed = path.read_bytes()
    assert code_store.unseal("scan_frames", sealed) is None
    monkeypatch.setattr(code_store, "code_key", lambda: "another key")
    assert code_store.read_sealed(KERNEL) is None
    assert code_store.unseal(KERNEL, sealed) is None


def test_the_key_depends_on_sources_versions_and_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {code_key.code_key()}
    changes: list[tuple[Any, str, Any]] = [
        (code_key, "_source", lambda name: b"another opcode"),
        (code_key, "_version", lambda package: "0.1"),
        (decode_rows, "DEPTH_MAX", 5),
        (sysconfig, "get_platform", lambda: "linux-riscv64"),
        (sys.implementation, "cache_tag", "cpython-399"),
    ]
    for where, name, value in changes:
        with monkeypatch.context() as patched:
            patched.setattr(where, name, value)
            keys.add(code_key.code_key.__wrapped__())
    assert len(keys) == 1 + len(changes)


@pytest.mark.usefixtures("store")
def test_unusable_code_is_compiled_again_and_stored(store: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    damage(stored(store))
    compile_kernels([KERNEL])
    header, _, sent = capfdbinary.readouterr().out.partition(b"\n")
    sealed = code_store.read_sealed(KERNEL)
    assert sealed is not None
    assert sent == sealed
    assert header == f"{KERNEL} {len(sealed)}".encode()
    assert CodeLibrary().link(KERNEL, sealed)


def test_only_one_process_compiles_and_others_use_its_code(store: Path) -> None:
    with code_store.locked(store):
        waiting = subprocess.Popen([sys.executable, "-m", library.CHILD_MODULE, KERNEL], stdout=subprocess.PIPE)
        code_store.write_sealed(store, KERNEL, code_store.seal(KERNEL, b"stored by the first process"))
    sent, _ = waiting.communicate(timeout=300)
    assert sent.endswith(b"stored by the first process")


def test_without_a_writable_directory_the_code_is_compiled_and_not_stored(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv(code_store.DIRECTORY_VARIABLE, "/proc/no such directory")
    compile_kernels([KERNEL])
    header, _, sent = capfdbinary.readouterr().out.partition(b"\n")
    assert header == f"{KERNEL} {len(sent)}".encode()
    assert code_store.unseal(KERNEL, sent) is not None


def test_code_that_does_not_fit_is_not_linked() -> None:
    empty = CodeLibrary()
    assert not empty.link(KERNEL, b"")
    assert not empty.link("unknown", code_store.seal("unknown", b"code"))


@pytest.mark.usefixtures("store")
def test_if_compilation_fails_plain_python_decodes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(library, "CHILD_MODULE", "headgate.no_such_module")
    failing = CodeLibrary()
    decoder = ColumnarDecoder(parse('"string"'), FixedSchemas({1: '"string"'}), engine=Adaptive(failing))
    with pytest.raises(NotCompiled, match="no_such_module"):
        failing.wait("decode_rows")
    batch = decoder.decode(pa.array([b"\0\0\0\0\1\2a", b"x"]))
    assert (batch.values.to_pylist(), batch.reasons.to_pylist()) == (["a", None], [0, Reason.TOO_SHORT])
    assert "plain Python" in caplog.text


def test_a_paused_library_starts_no_thread(store: Path) -> None:
    idle = CodeLibrary()
    with idle.paused():
        assert idle.get(KERNEL) is None
    assert list(store.iterdir()) == []


def test_arrays_of_another_type_are_rejected() -> None:
    kernel = LIBRARY.wait(KERNEL)
    offsets, text = np.array([0, 1], np.int32), np.array([65], np.uint8)
    assert kernel(offsets, text) == 0
    frozen = text.copy()
    frozen.flags.writeable = False
    for wrong in ((offsets.astype(np.int64), text), (np.zeros(4, np.int32)[::2], text), (offsets, frozen)):
        with pytest.raises(TypeError, match="flat array"):
            kernel(*wrong)


class Late(CodeLibrary):
    """Machine code becomes available after a number of requests."""

    def __init__(self, requests: int) -> None:
        super().__init__()
        self.requests = requests

    def get(self, kernel: str) -> Callable[..., int] | None:
        self.requests -= 1
        return None if self.requests >= 0 else LIBRARY.wait(kernel)


def decoded_in_parts(decoder: ColumnarDecoder, payloads: pa.Array) -> list[Batch]:
    batches = []
    while len(payloads):
        batches.append(decoder.decode(payloads))
        payloads = payloads.slice(len(batches[-1].reasons))
    return batches


@pytest.mark.parametrize("batch_bytes_max", [2**62, 3000])
def test_verdicts_are_the_same_before_and_after_the_switch(
    batch_bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The switch happens between any two rows, also after a buffer was enlarged and when a batch is full."""
    monkeypatch.setattr(engines, "PLAIN_ROWS", 3)
    met: set[int] = set()
    for seed in range(5000, 5040):
        rng = Random(seed)
        made = round_of(rng)
        if made is None:
            continue
        reader, schemas = parse(json.dumps(made[1])), FixedSchemas({1: json.dumps(made[0])})
        payloads = pa.array(payloads_of(rng, made[0], 30, 0.5), pa.binary())
        switching = [Adaptive(Late(requests)) for requests in (1, 2, 5, 9, 1000)]
        tested: list[Engine] = [Compiled(), Plain(), *switching]
        expected, *others = (
            decoded_in_parts(
                ColumnarDecoder(reader, schemas, recursion_max=1, batch_bytes_max=batch_bytes_max, engine=engine),
                payloads,
            )
            for engine in tested
        )
        for batches in others:
            assert [batch.reasons for batch in batches] == [batch.reasons for batch in expected]
            assert [batch.schema_ids for batch in batches] == [batch.schema_ids for batch in expected]
            assert [str(batch.values) for batch in batches] == [str(batch.values) for batch in expected]
        reasons = [reason for batch in expected for reason in batch.reasons.to_pylist()]
        assert len(reasons) == len(payloads)
        met |= set(reasons)
    assert {0, Reason.NULL, Reason.TRUNCATED, Reason.CORRUPT} <= met


def test_large_rows_are_checked_for_the_switch_one_by_one() -> None:
    """Plain Python can take seconds for one row. The next row must not wait for the end of the batch."""
    numbers = {"type": "array", "items": "int"}
    schema = json.dumps({"type": "record", "name": "R", "fields": [
        {"name": "skipped", "type": numbers}, {"name": "id", "type": "int"},
    ]})  # fmt: skip
    row = b"\0\0\0\0\1" + b"\x02\x02" * engines.PLAIN_BYTES + b"\0\2"
    library = Late(1000)
    decoder = ColumnarDecoder(project(parse(schema), ["id"]), FixedSchemas({1: schema}), engine=Adaptive(library))
    assert decoder.decode(pa.array([row] * 4, pa.binary())).values.to_pylist() == [{"id": 1}] * 4
    requests_of_scan_frames = 1
    assert 1000 - library.requests == requests_of_scan_frames + 4


def test_encoding_is_the_same_before_and_after_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "PLAIN_ROWS", 3)
    schema = parse('{"type": "array", "items": "string"}')
    rows = pa.array([["a" * size] * size if size % 7 else None for size in range(60)])
    expected = ColumnarEncoder(schema, 1, engine=Compiled()).encode(rows)
    for requests in (0, 1, 4, 1000):
        encoded = ColumnarEncoder(schema, 1, engine=Adaptive(Late(requests))).encode(rows)
        assert encoded.payloads == expected.payloads
        assert encoded.reasons == expected.reasons


def test_stored_code_needs_no_compiler() -> None:
    code = """
import sys
sys.modules["numba"] = None
import pyarrow as pa
from headgate.serdes.avro import parse
from headgate.serdes.columnar import ColumnarDecoder, Compiled, FixedSchemas
decoder = ColumnarDecoder(parse('"string"'), FixedSchemas({1: '"string"'}), engine=Compiled())
print(decoder.decode(pa.array([b"\\0\\0\\0\\0\\1\\2a", b"x"])).values.to_pylist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['a', None]"


def test_every_kernel_has_a_signature_and_its_row_argument() -> None:
    from headgate.serdes.columnar.native.compiler import FUNCTIONS

    assert FUNCTIONS.keys() == SIGNATURES.keys()
    for kernel, function in FUNCTIONS.items():
        assert function.__code__.co_argcount == len(SIGNATURES[kernel])
    assert decode_rows.decode_rows.__code__.co_varnames[decode_rows.SLOTS_AT] == "slots"
    assert encode_rows.encode_rows.__code__.co_varnames[encode_rows.REASONS_AT] == "reasons"
