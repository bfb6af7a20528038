"""The tools of `make soak`, `make spark-matrix` and `make spark-guide`, which run outside the suite."""

import os
from pathlib import Path
from xml.etree import ElementTree

from tests.soak.chart import line_chart
from tests.soak.memory import Samples, resident_mib
from tests.soak.producer import schema_of
from tests.spark_guide import blocks
from tests.spark_matrix import counts_of

SVG = "{http://www.w3.org/2000/svg}"


def samples_of(values: list[float]) -> Samples:
    samples = Samples()
    for at, value in enumerate(values):
        samples.add(at, {"broker": value})
    return samples


def test_growing_memory_is_not_flat() -> None:
    assert samples_of([900.0] * 4 + [200.0, 210.0, 190.0, 205.0] * 3).is_flat("broker")
    growing = samples_of([100.0 + 10 * at for at in range(40)])
    assert not growing.is_flat("broker")
    assert growing.growth("broker") == (245.0, 445.0)


def test_samples_are_stored_as_csv(tmp_path: Path) -> None:
    samples = Samples()
    samples.add(0.04, {"broker": 10.26})
    samples.add(2, {"broker": 11, "registry": 5})
    samples.write(tmp_path / "soak.csv")
    assert (tmp_path / "soak.csv").read_text(encoding="utf-8").split() == [
        "seconds,broker,registry",
        "0.0,10.3,",
        "2,11,5",
    ]


def test_the_memory_of_this_session_is_measured() -> None:
    assert resident_mib(os.getsid(0))["python"] > 1


def test_a_chart_has_a_line_per_series_and_a_mark_per_event() -> None:
    text = line_chart("1 < 2", "MiB", {"a": [(0, 1), (60, 2)], "b": [(0, 3)]}, [(30, "kill & go")])
    root = ElementTree.fromstring(text)
    assert len(root.findall(f"{SVG}polyline")) == 2
    assert [title.text for title in root.iter(f"{SVG}title")] == ["kill & go"]
    assert "1 < 2" in [each.text for each in root.iter(f"{SVG}text")]


def test_each_schema_version_adds_an_optional_field() -> None:
    assert [field["name"] for field in schema_of(3)["fields"]] == ["id", "added_1", "added_2"]


def test_a_report_is_counted_by_outcome(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    cases = "<testcase/><testcase/><testcase><failure/></testcase><testcase><error/></testcase>"
    skipped = '<testcase><skipped message="no server"/></testcase>' * 2
    report.write_text(f"<testsuites><testsuite>{cases}{skipped}</testsuite></testsuites>", encoding="utf-8")
    assert counts_of(report) == (2, 2, {"no server": 2})


def test_the_guide_has_the_commands_that_are_run() -> None:
    pack, submit, in_cluster = blocks()
    assert "venv-pack" in pack
    assert "--archives env.tar.gz#env" in submit
    assert "--deploy-mode cluster" in in_cluster
