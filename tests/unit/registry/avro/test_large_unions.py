"""Unions with nearly the maximum number of branches, within the default limits."""

import pytest

from headgate.registry.compatibility.avro import check
from tests.unit.registry.avro.test_unions import namesakes


@pytest.mark.parametrize("depth", [0, 1])
def test_nearly_a_thousand_incompatible_records_that_share_one_name_are_not_rejected(depth: int) -> None:
    assert len(check(namesakes(999, "int", depth=depth), namesakes(999, "long", depth=depth))) == 999
