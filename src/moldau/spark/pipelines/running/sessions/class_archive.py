"""Makes the archive of Spark's classes that `quick_start` looks for, in a process of its own.

A JVM archives the classes that it has loaded, so this one answers questions as `moldau sql` would, about rows of its
own. The file gets its name when it is whole.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.core.clock import SystemClock
from moldau.spark.pipelines.running.sessions.opening import NoSpark, open_session
from moldau.spark.pipelines.running.sessions.quick_start import archiving_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OK, FAILED = 0, 1
WAITS = "--wait"  # for somebody else who makes it
AGAIN_S = 24 * 3600.0  # some Javas keep no classes: whoever asks them every minute should not pay for it each time
LOWEST_PRIORITY = 19
END_S_MAX = 120.0
QUESTIONS = (
    "select customer, sum(amount), count(*) from orders group by customer",
    "select * from orders where amount > 2 order by _timestamp desc limit 10",
    "select a.customer, b.amount from orders a join orders b on a.customer = b.customer",
    "select customer, amount, row_number() over (partition by customer order by amount) from orders",
    "select date_trunc('HOUR', _timestamp), avg(amount), max(id) from orders group by 1 having count(*) > 0",
)


def begin(kept: Path) -> None:
    """In the background, for the next start: whoever asked has the answer, and does not wait."""
    with suppress(OSError):
        if SystemClock().now_ms() / 1_000 - _failure(kept).stat().st_mtime < AGAIN_S:
            return
    subprocess.Popen(
        _command(kept),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def make(kept: Path) -> bool:
    """And wait for it; False if it could not be made."""
    command = [*_command(kept), WAITS]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == OK


def _command(kept: Path) -> list[str]:
    # Without -P a module in the folder where somebody asks would be taken for one of Python's.
    return [sys.executable, "-P", "-m", __name__, str(kept)]


def main(kept: Path, *, waits: bool = False) -> int:
    os.nice(LOWEST_PRIORITY)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return OK  # somebody else asked at the same time
        if kept.is_file():
            return OK
        is_made = False
        try:
            is_made = _make(kept)
        finally:
            if is_made:
                _failure(kept).unlink(missing_ok=True)
            else:
                _failure(kept).touch()
    return OK if is_made else FAILED


def _failure(kept: Path) -> Path:
    return kept.with_suffix(".failed")


def _make(kept: Path) -> bool:
    """Under the lock, so folders of others are of processes that were ended, and as large as an archive."""
    prefix = f"{kept.stem}-making-"
    for left in kept.parent.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=kept.parent) as folder:
        written = Path(folder, kept.name)
        try:
            spark = open_session(
                "moldau sql", "local[2]", {}, log=Path(folder, "spark.log"), java=archiving_options(written)
            )
        except NoSpark:
            return False
        _ask(spark)
        _end(spark)
        if not written.is_file():
            return False
        written.replace(kept)
    return True


def _ask(spark: SparkSession) -> None:
    """As `SqlSession` does it with a topic that is small."""
    import pyarrow as pa

    count = 100
    rows = pa.table(
        {
            "id": list(range(count)),
            "customer": [f"c{number % 7}" for number in range(count)],
            "amount": [number * 1.5 for number in range(count)],
            "_timestamp": pa.array(range(count), pa.timestamp("us", tz="UTC")),
        }
    )
    spark.createDataFrame(rows).createOrReplaceTempView("orders")
    for question in QUESTIONS:
        list(spark.sql(question).toLocalIterator())


def _end(spark: SparkSession) -> None:
    """A JVM of PySpark's ends with its standard input, and writes the archive before that."""
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    with suppress(BrokenPipeError):
        gateway.proc.stdin.close()
    gateway.proc.wait(END_S_MAX)


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), waits=WAITS in sys.argv[2:]))
