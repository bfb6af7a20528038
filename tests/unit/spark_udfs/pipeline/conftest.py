from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from headgate.spark_udfs.pipeline.checkpoints import Checkpoint
from headgate.spark_udfs.pipeline.filesystem import Files
from tests.unit.serdes.stub_registry import StubRegistry
from tests.unit.spark_udfs.fake_spark import FakeHadoop, from_ddl
from tests.unit.spark_udfs.pipeline.examples import ORDER
from tests.unit.spark_udfs.plans import text_of


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    hadoop: Any = FakeHadoop()
    return Checkpoint(Files(hadoop), str(tmp_path / "state"), "shop", "identity")


@pytest.fixture
def ddl_without_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StructType, "fromDDL", from_ddl)


@pytest.fixture
def registry(stub_registry: StubRegistry) -> StubRegistry:
    """A registry with the schema of orders."""
    stub_registry.add("orders-value", {"schema": text_of(ORDER)})
    return stub_registry
