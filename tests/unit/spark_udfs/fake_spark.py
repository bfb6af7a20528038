"""A Spark session without a JVM.

A DataFrame records its operations as text. Columns are those of Spark Connect, which need no session. The session
records every action, and answers it with a value of the test: the first of `answers` whose text the action contains.
"""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark.sql.types import DataType, NullType, StructField, StructType

WRITE_ACTIONS = ("save", "saveAsTable", "parquet", "json", "insertInto")
READ_ACTIONS = ("load", "table", "parquet", "jdbc")


def schema(**columns: "str | DataType") -> StructType:
    """`schema(id="long", value=schema(x="string"))`."""
    found = StructType()
    for name, kind in columns.items():
        found = found.add(name, kind)
    return found


def from_ddl(text: str) -> StructType:
    """`StructType.fromDDL` without a session. Unknown types are strings."""
    found = StructType()
    for name, kind in re.findall(r"`?(\w+)`? ([\w(<]+)", re.sub(r"<.*?>+|(?<=\d),", "", text)):
        known = {"bigint": "long", "int": "integer"}.get(kind.lower(), kind.lower())
        found = found.add(name, known if known in {"long", "integer", "double", "timestamp", "binary"} else "string")
    return found


def shown(value: object) -> str:
    text = repr(value)
    if text.startswith("Column<"):
        return text[len("Column<'") : -len("'>")]
    return value.simpleString() if isinstance(value, DataType) else str(value)


def _called(name: str, arguments: tuple[object, ...], options: dict[str, object]) -> str:
    texts = [*map(shown, arguments), *(f"{key}={shown(value)}" for key, value in options.items())]
    return f"{name}({', '.join(texts)})"


class FakeSession:
    version = "4.2.1"

    def __init__(self, *answers: tuple[str, Any], **conf: str) -> None:
        self.answers = list(answers)
        self.actions: list[str] = []
        self.settings = {name.replace("__", "."): value for name, value in conf.items()}
        self.conf = SimpleNamespace(
            get=lambda name, default=None: self.settings.get(name, default),
            set=self.settings.__setitem__,
            unset=self.settings.pop,
        )
        self.catalog = SimpleNamespace(
            tableExists=lambda name: self.answer(f"tableExists({name})"),
            dropTempView=lambda name: self.actions.append(f"dropTempView({name})"),
        )

    def newSession(self) -> "FakeSession":
        return self

    def answer(self, action: str) -> Any:
        """The result of an action, or its error."""
        self.actions.append(action)
        for text, value in self.answers:
            if text in action:
                if isinstance(value, Exception):
                    raise value
                return value() if callable(value) else value
        return None

    def frame(self, columns: StructType, plan: str = "df", *, streaming: bool = False) -> "FakeFrame":
        return FakeFrame(self, columns, plan, streaming=streaming)

    def createDataFrame(
        self, rows: list[Any], columns: "StructType | str", *, verifySchema: bool = True
    ) -> "FakeFrame":
        kinds = from_ddl(columns) if isinstance(columns, str) else columns
        return FakeFrame(self, kinds, f"createDataFrame({rows}{'' if verifySchema else ', verifySchema=False'})")

    def sql(self, text: str) -> "FakeFrame":
        found = self.answer(f"sql({text})")
        return FakeFrame(self, found if isinstance(found, StructType) else StructType(), f"sql({text})")

    @property
    def read(self) -> "Chain":
        return Chain(self, "read", READ_ACTIONS)

    @property
    def readStream(self) -> "Chain":
        return Chain(self, "readStream", READ_ACTIONS)


class Chain:
    """A reader or writer: options, then one action."""

    def __init__(self, session: FakeSession, text: str, ends: tuple[str, ...]) -> None:
        self._session = session
        self._text = text
        self._ends = ends
        self._schema: Any = None

    def schema(self, columns: Any) -> "Chain":
        self._schema = columns
        self._text += f".schema({shown(columns)})"
        return self

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: object, **options: object) -> Any:
            self._text += f".{_called(name, arguments, options)}"
            if name not in self._ends:
                return self
            found = self._session.answer(self._text)
            if not self._text.startswith("read"):
                return None
            columns = found if isinstance(found, StructType) else self._schema
            streaming = self._text.startswith("readStream")
            return FakeFrame(self._session, columns or StructType(), self._text, streaming=streaming)

        return call


class FakeFrame:
    def __init__(self, session: FakeSession, columns: StructType, plan: str, *, streaming: bool = False) -> None:
        self.sparkSession: Any = session
        self.schema = columns
        self.plan = plan
        self.isStreaming = streaming

    @property
    def columns(self) -> list[str]:
        return self.schema.names

    @property
    def write(self) -> Chain:
        return Chain(self.sparkSession, f"{self.plan}.write", WRITE_ACTIONS)

    def _next(self, text: str, columns: StructType | None = None) -> Any:
        found = self.schema if columns is None else columns
        return type(self)(self.sparkSession, found, f"{self.plan}.{text}", streaming=self.isStreaming)

    def select(self, *columns: object) -> Any:
        fields = [field for column in columns for field in self._fields(column)]
        return self._next(_called("select", columns, {}), StructType(fields))

    def agg(self, *columns: object) -> Any:
        fields = [field for column in columns for field in self._fields(column)]
        return self._next(_called("agg", columns, {}), StructType([*self.schema.fields, *fields]))

    def groupBy(self, *columns: object) -> "FakeGroups":
        found = self.select(*columns)
        return FakeGroups(self.sparkSession, found.schema, f"{self.plan}.{_called('groupBy', columns, {})}")

    def withColumn(self, name: str, column: object) -> Any:
        field = StructField(name, self._fields(column)[0].dataType)
        kept = [each for each in self.schema.fields if each.name != name]
        return self._next(f"withColumn({name}, {shown(column)})", StructType([*kept, field]))

    def drop(self, *names: str) -> Any:
        kept = [field for field in self.schema.fields if field.name not in names]
        return self._next(_called("drop", names, {}), StructType(kept))

    def mapInArrow(self, function: Any, columns: StructType) -> Any:
        found = self._next(f"mapInArrow({type(function).__name__})", columns)
        found.function = function
        return found

    def withColumns(self, columns: dict[str, object]) -> Any:
        found: Any = self
        for name, column in columns.items():
            found = found.withColumn(name, column)
        return found

    def observe(self, observation: Any, *columns: object) -> Any:
        observation.frame = self._next(_called("observe", columns, {}))
        return observation.frame

    def persist(self) -> Any:
        self.sparkSession.actions.append("persist")
        return self

    def unpersist(self) -> None:
        self.sparkSession.actions.append("unpersist")

    def createOrReplaceTempView(self, name: str) -> None:
        self.sparkSession.actions.append(f"view({name})")

    def __getattr__(self, name: str) -> Any:
        if name in {"where", "alias", "limit", "join", "unionByName", "withWatermark", "union"}:
            return lambda *given: self._next(
                _called(name, tuple(one.plan if isinstance(one, FakeFrame) else one for one in given), {})
            )
        if name in {"collect", "count", "toLocalIterator", "first", "isEmpty"}:
            return lambda **options: self.sparkSession.answer(f"{self.plan}.{_called(name, (), options)}")
        raise AttributeError(name)

    def _fields(self, column: object) -> list[StructField]:
        text = shown(column)
        if text == "*":
            return self.schema.fields
        before, _, alias = text.rpartition(" AS ")
        if alias.isidentifier():
            return [StructField(alias, self._fields(before)[0].dataType)]
        if cast := re.fullmatch(r"CAST\(.* AS (\w+)\)", text):
            return from_ddl(f"{cast[1]} {cast[1]}").fields
        path = text.replace("`", "").split(".")
        kind: DataType = self.schema
        for name in path:
            if name == "*" and isinstance(kind, StructType):
                return kind.fields
            if not isinstance(kind, StructType) or name not in kind.names:
                return [StructField(path[-1], NullType())]
            kind = kind[name].dataType
        return [StructField(path[-1], kind)]


class FakeObservation:
    """The number of rows of an observed DataFrame, in place of `pyspark.sql.Observation`."""

    frame: Any

    @property
    def get(self) -> dict[str, Any]:
        return {"rows": self.frame.sparkSession.answer(f"{self.frame.plan}.get()")}


class FakeGroups(FakeFrame):
    def _next(self, text: str, columns: StructType | None = None) -> Any:
        found = self.schema if columns is None else columns
        return FakeFrame(self.sparkSession, found, f"{self.plan}.{text}")

    def count(self) -> Any:
        return self._next("count()", StructType([*self.schema.fields, StructField("count", NullType())]))


class FakeHadoop:
    """Hadoop's file system client on local folders, and the parts of a session that provide it."""

    def __init__(self) -> None:
        self.failing: set[str] = set()
        """Operations that return False."""
        hadoop = SimpleNamespace(fs=SimpleNamespace(Path=lambda text: FakePath(self, Path(text))))
        self._jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=hadoop)))
        self._jsc = SimpleNamespace(hadoopConfiguration=lambda: None)

    @property
    def sparkContext(self) -> "FakeHadoop":
        return self

    def exists(self, place: "FakePath") -> bool:
        return place.path.exists()

    def listStatus(self, place: "FakePath") -> list[Any]:
        paths = [FakePath(self, path) for path in place.path.iterdir()]
        return [SimpleNamespace(getPath=lambda path=path: path) for path in paths]

    def mkdirs(self, place: "FakePath") -> bool:
        if "mkdirs" in self.failing:
            return False
        place.path.mkdir(parents=True, exist_ok=True)
        return True

    def rename(self, place: "FakePath", target: "FakePath") -> bool:
        if "rename" in self.failing:
            return False
        place.path.rename(target.path)
        return True

    def delete(self, place: "FakePath", recursive: bool) -> None:
        if place.path.is_dir() and recursive:
            shutil.rmtree(place.path)
        elif place.path.is_dir():
            place.path.rmdir()
        else:
            place.path.unlink(missing_ok=True)

    def open(self, place: "FakePath") -> Any:
        content = place.path.read_bytes()
        return SimpleNamespace(readNBytes=lambda size: content[:size], close=lambda: None)

    def create(self, place: "FakePath", overwrite: bool) -> Any:
        if place.path.exists() and not overwrite:
            raise FileExistsError(place.path)
        return SimpleNamespace(write=place.path.write_bytes, close=lambda: None)


class FakePath:
    def __init__(self, system: FakeHadoop, path: Path) -> None:
        self._system = system
        self.path = path

    def getFileSystem(self, configuration: object) -> FakeHadoop:
        return self._system

    def getName(self) -> str:
        return self.path.name

    def getParent(self) -> "FakePath":
        return FakePath(self._system, self.path.parent)
