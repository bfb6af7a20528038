"""A byte range of a segment file: the records of a fetch response."""

import errno
from typing import NamedTuple

from headgate.broker.log.files import LogFile
from headgate.broker.log.page_cache import ColdRead


class Region(NamedTuple):
    """A range of a segment file. The broker sends its bytes unchanged."""

    file: LogFile
    position: int
    length: int

    def content(self) -> bytes:
        """Return all bytes of the region. Raises OSError."""
        content = self.file.read(self.position, self.length)
        if len(content) < self.length:
            raise self.shortened()
        return content

    def cached_content(self) -> bytes | bytearray:
        """Return all bytes of the region from the page cache. Raises ColdRead, OSError."""
        content = self.file.read_cached(self.position, self.length)
        if content is None:
            raise ColdRead(self.file, self.position, self.length)
        return content

    def shortened(self) -> OSError:
        """Return the error to raise if a read returns fewer bytes than the region has."""
        return OSError(errno.EIO, f"{self.file.path.name} is shorter than it was")
