"""Producer ids that nobody had before: taken from blocks, so that the disk is asked once in a thousand times."""

from collections.abc import Callable

# Kafka's own block size. A crash wastes the rest of a block, which 63 bits can afford.
block_ids = 1000


class ProducerIds:
    def __init__(self, allocate: Callable[[int], range]) -> None:
        self._allocate = allocate
        self._block = iter(range(0))

    def take(self) -> int:
        """Raises StorageError when a new block cannot be made durable."""
        taken = next(self._block, None)
        if taken is None:
            self._block = iter(self._allocate(block_ids))
            taken = next(self._block)
        return taken
