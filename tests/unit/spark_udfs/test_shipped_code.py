"""The plan contains the compiled code, so that a new executor need not compile."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.serdes.columnar.engine import code_to_ship
from headgate.serdes.columnar.native import code_store
from headgate.serdes.columnar.native.library import LIBRARY
from headgate.serdes.columnar.native.signatures import DECODING_KERNELS
from headgate.spark_udfs.executor.decoding import Decoding
from headgate.spark_udfs.spec.reader import Reader, SchemaText
from headgate.spark_udfs.spec.registry_options import RegistryOptions

TEXT = SchemaText("AVRO", '"string"')
PLAN = Decoding(Reader(TEXT, writers=((1, TEXT),)), RegistryOptions())
EXECUTOR = """
import pickle, sys
from headgate.serdes.columnar.native import library
library.CHILD_MODULE = "headgate.no_such_module"
decoding = pickle.load(sys.stdin.buffer)
import numpy as np
from pyarrow import lib as pa
# `pa.array` imports pandas.
buffers = [None, *map(pa.py_buffer, (np.array([0, 7, 8], np.int32), b"\\0\\0\\0\\0\\1\\2ax"))]
payloads = pa.Array.from_buffers(pa.binary(), 2, buffers)
columns = decoding.decode(payloads)
assert len(decoding.outcome(columns, payloads)) == 4
print(columns.values.to_pylist(), columns.reasons.to_pylist())
print([name for name in library.SIGNATURES if library.LIBRARY.get(name) is not None])
print([name for name in ("numba", "pandas", "pyspark") if name in sys.modules])
"""
"""A process without stored code that cannot compile."""


def executor_output(plan: Decoding, directory: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", EXECUTOR],
        input=pickle.dumps(plan),
        env={**os.environ, code_store.DIRECTORY_VARIABLE: str(directory)},
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().splitlines()


@pytest.fixture(scope="module")
def shipped() -> Decoding:
    for kernel in DECODING_KERNELS:
        LIBRARY.wait(kernel)
    return replace(PLAN, code=code_to_ship(DECODING_KERNELS))


def test_an_executor_uses_the_code_of_the_plan(shipped: Decoding, tmp_path: Path) -> None:
    values, kernels, modules = executor_output(shipped, tmp_path)
    assert values == "['a', None] [None, 'TOO_SHORT']"
    assert kernels == str(list(DECODING_KERNELS))
    assert modules == "[]"


def test_code_that_does_not_fit_is_ignored_and_the_results_are_the_same(shipped: Decoding, tmp_path: Path) -> None:
    foreign = replace(shipped, code=tuple((kernel, sealed[:-1]) for kernel, sealed in shipped.code))
    values, kernels, _ = executor_output(foreign, tmp_path)
    assert values == "['a', None] [None, 'TOO_SHORT']"
    assert kernels == "[]"


def test_code_does_not_change_the_identity_of_a_plan(shipped: Decoding) -> None:
    assert shipped == PLAN
    assert hash(shipped) == hash(PLAN)
    assert len(repr(shipped)) < 2000
    assert len(pickle.dumps(shipped)) < 200_000
