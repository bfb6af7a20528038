"""Files wherever Spark can reach them (local disk, HDFS, object stores), through Hadoop's own client in the driver.

Only what checkpoints, tables and the Parquet sink need. A rename is atomic on local disks and HDFS; on object stores it
is not, and the documentation of the Parquet sink says so.
"""

from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT_BYTES_MAX = 16 * 1024 * 1024
"""Of a file that is read as a whole; ours have a few kilobytes."""


class Files:
    """The file systems that a session knows."""

    def __init__(self, spark: "SparkSession") -> None:
        # The gateway is PySpark's way into its own JVM; it has no types.
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm
        self._configuration: Any = context._jsc.hadoopConfiguration()

    def exists(self, path: str) -> bool:
        place, system = self._at(path)
        return bool(system.exists(place))

    def names(self, path: str) -> list[str]:
        """What is directly in a folder; nothing where there is none."""
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
            why = _said(error)
        raise PipelineError(
            f"the folder {path} cannot be made", why=why, advice="check the path, and who may write there"
        )

    def rename(self, old: str, new: str) -> None:
        """Raises `OSError` where the new name is taken or the old one is gone."""
        target, _ = self._at(new)
        place, system = self._at(old)
        if system.exists(target):
            raise FileExistsError(f"{new} exists")
        parent = target.getParent()
        system.mkdirs(parent)
        if not system.rename(place, target):
            raise OSError(f"{old} could not be renamed to {new}")

    def delete(self, path: str) -> None:
        """With everything in it; nothing happens where nothing is."""
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
        """All or nothing: written beside, then renamed over what was there."""
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
                f"{path} cannot be reached", why=_said(error), advice="object stores need their jars under [spark]"
            ) from error


def _said(error: Any) -> str:
    """What Java says, without its trace."""
    return str(error.java_exception.getMessage())


def joined(*parts: str) -> str:
    """Of a path or an address."""
    return "/".join([parts[0].rstrip("/"), *parts[1:]])
