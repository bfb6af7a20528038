"""File operations on any file system that Spark supports (local, HDFS, object stores), through Hadoop's client.

Contains only the operations that checkpoints, tables and the Parquet sink need. A rename is atomic on local disks and
HDFS, but not on object stores.
"""

from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT_BYTES_MAX = 16 * 1024 * 1024
"""Maximum size of a file that is read as a whole. Real files have a few kilobytes."""


class Files:
    """The file systems of a Spark session."""

    def __init__(self, spark: "SparkSession") -> None:
        # The Py4J gateway has no types.
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm
        self._configuration: Any = context._jsc.hadoopConfiguration()

    def exists(self, path: str) -> bool:
        place, system = self._at(path)
        return bool(system.exists(place))

    def names(self, path: str) -> list[str]:
        """The names in a folder; empty if the folder does not exist."""
        place, system = self._at(path)
        if not system.exists(place):
            return []
        return sorted(str(status.getPath().getName()) for status in system.listStatus(place))

    def make_folder(self, path: str) -> None:
        """Raises `PipelineError`."""
        from py4j.protocol import Py4JJavaError

        place, system = self._at(path)
        why = ""
        try:
            if system.mkdirs(place):
                return
        except Py4JJavaError as error:
            why = _message(error)
        raise PipelineError(f"cannot create the folder {path}", why=why, advice="check the path and its permissions")

    def rename(self, old: str, new: str) -> None:
        """Raises `OSError` if the new name exists or the old one does not."""
        target, _ = self._at(new)
        place, system = self._at(old)
        if system.exists(target):
            raise FileExistsError(f"{new} exists")
        parent = target.getParent()
        system.mkdirs(parent)
        if not system.rename(place, target):
            raise OSError(f"cannot rename {old} to {new}")

    def delete(self, path: str) -> None:
        """Delete a file or a folder with its content, if it exists."""
        place, system = self._at(path)
        system.delete(place, True)

    def read_text(self, path: str) -> str:
        place, system = self._at(path)
        stream = system.open(place)
        try:
            return bytes(stream.readNBytes(TEXT_BYTES_MAX)).decode("utf-8")
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        """Replace a file: write a temporary file, delete the old one, rename."""
        temporary = f"{path}.new"
        place, system = self._at(temporary)
        stream = system.create(place, True)
        try:
            stream.write(bytearray(text.encode("utf-8")))
        finally:
            stream.close()
        target, _ = self._at(path)
        if system.exists(target):
            system.delete(target, False)
        self.rename(temporary, path)

    def _at(self, path: str) -> tuple[Any, Any]:
        from py4j.protocol import Py4JJavaError

        try:
            place = self._jvm.org.apache.hadoop.fs.Path(path)
            return place, place.getFileSystem(self._configuration)
        except Py4JJavaError as error:
            raise PipelineError(
                f"cannot access {path}", why=_message(error), advice="object stores need their jars in [spark]"
            ) from error


def _message(error: Any) -> str:
    """The Java message without the stack trace."""
    return str(error.java_exception.getMessage())


def joined(*parts: str) -> str:
    """Join the parts of a path or URL."""
    return "/".join([parts[0].rstrip("/"), *parts[1:]])
