"""Memory for fetch responses, reused from one response to the next (`kafka_client.aiokafka_internals`)."""

import numpy as np


class Block:
    """Holds one response at a time: the next response overwrites it. It grows and never shrinks.

    NumPy's uninitialized memory avoids filling every new buffer with zeros.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def room(self, size: int) -> memoryview:
        if len(self._memory) < size:
            self._memory = np.empty(size, np.uint8)
        return self._memory.data[:size]

    def leave(self) -> None:
        """Abandons the memory, because a late response may still write to it. The next response gets new memory."""
        self._memory = np.empty(0, np.uint8)
