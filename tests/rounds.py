"""How often random tests repeat. `make test` uses the small number, `make long` the large one."""

import os

LONG = os.environ.get("HEADGATE_TEST_LONG") == "1"


def rounds(few: int, many: int) -> int:
    return many if LONG else few
