"""Memory allocator of the process: glibc's malloc."""

import ctypes
from typing import Final

# Constants of malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3


def set_malloc_thresholds(*, kept_free_bytes_max: int, mmap_bytes_min: int) -> None:
    """Make glibc keep freed memory for the next allocation. No effect with another C library.

    By default, glibc returns the top of its heap as soon as 128 KiB are free, and maps larger buffers individually.
    Every large buffer then causes page faults, which can double the CPU time per byte.

    kept_free_bytes_max: free memory at the top of the heap that the process keeps.
    mmap_bytes_min: larger buffers get their own mapping, which is returned on free. glibc accepts up to 32 MiB.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, kept_free_bytes_max)
        mallopt(_M_MMAP_THRESHOLD, mmap_bytes_min)
