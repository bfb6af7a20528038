#!/bin/sh
# Resolves the lock files for every platform and Python >= 3.11, with hashes and without any index address.
set -eu
bin=$1
"$bin/python" -m pip install -q uv
compile() { "$bin/uv" pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url "$@"; }
printf 'editables\nhatch-vcs\nhatchling\n' > requirements/build.in
compile pyproject.toml requirements/build.in --extra server -o requirements/base.lock
compile pyproject.toml requirements/build.in --extra server --extra spark -c requirements/base.lock -c requirements/constraints.in -o requirements/spark.lock
compile pyproject.toml requirements/build.in --extra bench -c requirements/spark.lock -o requirements/test.lock
