"""What a batch keeps beside its checkpoint, before anything of it is written elsewhere: if it runs again, it is there.

Each piece is Parquet in `BATCH/PLAN/PIECE-COLUMNS`. Fingerprints of plan and columns are part of the path: after an
edit of the pipeline its batches are computed anew, or columns of one plan would be taken for those of another.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from moldau.spark.option_values import OptionError
from moldau.spark.pipelines.plan import Endpoint, Plan, Query
from moldau.spark.registry_names import is_about_registries
from moldau.spark.secrets import is_secret

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# One task for each kept file, whatever machine reads it again: a task's rows are part of what was written.
FILE_FOR_FILE = {
    "spark.sql.files.maxPartitionBytes": str(1 << 40),
    "spark.sql.files.openCostInBytes": str(1 << 40),
    "spark.sql.files.minPartitionNum": "1",
}
FINGERPRINT_DIGITS = 16
CURRENT_LIKE = "CURRENT_LIKE"  # Spark's word for what a clock says


@dataclass(frozen=True, slots=True)
class KeptBatch:
    session: SparkSession
    folder: str  # of all batches
    number: int
    plan: str  # its fingerprint

    def forget_previous(self) -> None:
        """A batch is only run again before the next one is."""
        _remove(self.session, f"{self.folder}/{self.number - 1}")

    def has(self, piece: str, like: DataFrame) -> bool:
        """With the columns of `like`."""
        return _exists(self.session, f"{self._path(piece, like)}/_SUCCESS")

    def put(self, piece: str, frame: DataFrame) -> DataFrame:
        """The same rows, read from where they are kept."""
        path, numbered = self._path(piece, frame), _numbered(frame)
        is_local = str(self.session.conf.get("spark.master", "")).startswith("local[")
        write_whole(numbered, path, None if is_local else lambda: self._read(path, numbered).count())
        return self.get(piece, frame)

    def get(self, piece: str, like: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f
        from pyspark.sql.types import NullType

        found = self._read(self._path(piece, like), _numbered(like))
        nothing = {at for at, one in enumerate(like.schema) if isinstance(one.dataType, NullType)}
        columns = [f.lit(None) if at in nothing else f.col(str(at)) for at in range(len(like.columns))]
        return found.select(*columns).toDF(*like.columns)

    def _read(self, path: str, numbered: DataFrame) -> DataFrame:
        for key, value in FILE_FOR_FILE.items():
            self.session.conf.set(key, value)
        return self.session.read.schema(numbered.schema).parquet(path)

    def _path(self, piece: str, like: DataFrame) -> str:
        return f"{self.folder}/{self.number}/{self.plan}/{piece}-{_digest(like.schema.simpleString())}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:FINGERPRINT_DIGITS]


def _numbered(frame: DataFrame) -> DataFrame:
    """As Parquet takes it: names may come twice, and what is null in all rows has no type."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import NullType

    numbered = frame.toDF(*map(str, range(len(frame.columns))))
    nothing = [str(at) for at, one in enumerate(frame.schema) if isinstance(one.dataType, NullType)]
    return numbered.withColumns({name: f.lit(None).cast("string") for name in nothing}) if nothing else numbered


def write_whole(frame: DataFrame, path: str, count: Callable[[], int] | None) -> None:
    """Executors that each write to a disk of their own leave nothing that others find, and Spark says nothing.

    `count` looks what is there, where executors may be elsewhere.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    if count is None:
        frame.write.mode("overwrite").parquet(path)
        return
    observed = Observation()
    frame.observe(observed, f.count(f.lit(1)).alias("rows")).write.mode("overwrite").parquet(path)
    if (found := count()) != (written := observed.get["rows"]):
        _remove(frame.sparkSession, path)
        raise OptionError(
            f"{written} rows were written to {path}, and {found} are there: what a batch keeps needs a checkpoint that "
            "the driver and all executors share; set it with: set checkpoint = 'PLACE'"
        )


def is_repeatable(frame: DataFrame) -> bool:
    """Whether a batch gives the same rows if it is computed again of the same ones, at another time."""
    analyzed = frame._jdf.queryExecution().analyzed()
    jvm: Any = frame.sparkSession._jvm
    pattern = jvm.org.apache.spark.sql.catalyst.trees.TreePattern.withName(CURRENT_LIKE)
    return bool(analyzed.deterministic()) and not analyzed.containsPattern(pattern)


def fingerprint(plan: Plan, query: Query) -> str:
    """Of all that decides what a query computes; where it stands in its file, and how brokers are reached, does not."""
    read = plan.read_by(query)
    known = {one.name.lower() for one in read.relations()}
    parts = [
        *(
            (one.name, one.kind.value, one.keys, one.are_changes, one.shaping, *_place(one.endpoint))
            for one in read.sources
        ),
        *((one.name, one.shaping, *_said(one.query)) for one in read.views),
        *(
            (rule.name, rule.on, rule.condition, rule.otherwise.value)
            for rule in read.expectations
            if rule.on.lower() in known
        ),
        tuple(_said(query)),
        *((name, *_code(function)) for name, function in read.functions.items()),
    ]
    return _digest(repr(parts))


def _place(endpoint: Endpoint) -> Iterator[Any]:
    yield endpoint.connector.value
    yield endpoint.location
    for key, value in sorted(endpoint.options.items()):
        if not key.lower().startswith("kafka.") and not is_about_registries(key) and not is_secret(key):
            yield key, value


def _said(query: Query) -> Iterator[Any]:
    yield query.sql
    if query.function is not None:
        yield from _code(query.function)


def _code(function: Any) -> Iterator[Any]:
    """What a function of Python does, as far as its own code says it."""
    code = getattr(getattr(function, "func", function), "__code__", None)  # a UDF of Spark has its function inside
    if isinstance(code, CodeType):
        yield from _instructions(code)


def _instructions(code: CodeType) -> Iterator[Any]:
    yield code.co_code
    yield code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)
        else:
            yield sorted(map(repr, constant)) if isinstance(constant, frozenset) else repr(constant)


def _exists(session: SparkSession, path: str) -> bool:
    if not hasattr(session, "_jvm"):
        return Path(path).exists()
    files, place = _file_system(session, path)
    return bool(files.exists(place))


def _remove(session: SparkSession, path: str) -> None:
    if not hasattr(session, "_jvm"):
        shutil.rmtree(path, ignore_errors=True)
        return
    files, place = _file_system(session, path)
    files.delete(place, True)


def _file_system(session: Any, path: str) -> tuple[Any, Any]:
    """Whatever Spark takes for a checkpoint: a folder here, or a store elsewhere."""
    place = session._jvm.org.apache.hadoop.fs.Path(path)
    return place.getFileSystem(session._jsparkSession.sessionState().newHadoopConf()), place
