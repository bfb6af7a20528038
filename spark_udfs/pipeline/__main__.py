"""Run a pipeline without the `headgate` command: `python -m headgate.spark_udfs.pipeline FILE`, or spark-submit.

    spark-submit run_pipeline.py FILE

where `run_pipeline.py` contains:

    from headgate.spark_udfs.pipeline.__main__ import main
    raise SystemExit(main())

Exit codes are those of the `headgate` command: 0 success, 1 failure, 2 invalid file or arguments, 4 server not
reachable, 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from headgate.spark_udfs.extra import MissingExtra
from headgate.spark_udfs.pipeline.command import RunOptions, parse_overrides, plan_pipeline, print_plan, run_pipeline
from headgate.spark_udfs.pipeline.errors import PipelineError, PipelineMistakes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m headgate.spark_udfs.pipeline", description="Run a declared pipeline."
    )
    parser.add_argument("file", type=Path, help="the pipeline file, in TOML or YAML")
    parser.add_argument(
        "--plan", action="store_true", help="show the plan and the columns of every step, and do not run"
    )
    parser.add_argument("--json", action="store_true", help="print the plan or the metrics as JSON")
    parser.add_argument("--once", action="store_true", help="process the available rows and exit")
    parser.add_argument("--metrics-json", type=Path, metavar="FILE", help="write the metrics to this file")
    parser.add_argument("--metrics-listen", metavar="HOST:PORT", help="serve the metrics to Prometheus")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a value of the file")
    given = parser.parse_args(arguments)
    try:
        overrides = parse_overrides(given.set)
        if given.plan:
            print_plan(plan_pipeline(given.file, overrides), as_json=given.json)
        else:
            document = run_pipeline(
                given.file, RunOptions(given.once, given.metrics_json, given.metrics_listen, overrides)
            )
            if given.json:
                import json

                print(json.dumps(document))
    except KeyboardInterrupt:
        return 130
    except PipelineMistakes as mistakes:
        print(mistakes, file=sys.stderr)
        return 2
    except PipelineError as error:
        for prefix, text in (("error", error.what), ("  why", error.why), ("  try", error.advice)):
            if text:
                print(f"{prefix}: {text}", file=sys.stderr)
        return 4 if error.unreachable else 1
    except MissingExtra as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
