"""What a Python worker has loaded, left out of garbage collections.

PySpark collects garbage after every task. Over Arrow, pandas, Numba and the decoder that takes a tenth of a second,
several times what a small task's rows take. None of it is ever garbage.
"""

import gc


def leave_out_what_is_loaded() -> None:
    """What is alive now is not looked at again, in forked processes neither, which share its memory the longer."""
    gc.collect()
    gc.freeze()
