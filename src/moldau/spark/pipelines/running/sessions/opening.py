"""A Spark to run on: this machine's, a cluster's or a Connect server's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.spark.pipelines.running.reasons import said_by
from moldau.spark.pipelines.running.sessions.terminal import filtered
from moldau.spark.storage import Folder, LocalFolder, StorageFailed, folder_without_session, is_url, shown_to_all
from moldau.spark.workers import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
SUBMITTED = "PYSPARK_GATEWAY_PORT"  # spark-submit started us, and has its own word on the master
NO_SPARK = "Spark is not installed: run pip install 'moldau[spark]'"
NO_JAVA = (
    "Spark needs Java 17 or newer, and none was found. Install one "
    "(Debian and Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17), "
    "or set JAVA_HOME to where it is"
)
LOGGING = Path(__file__).with_name("log4j2.properties")
# Small frames on one machine: two hundred shuffle partitions, Spark's default, would cost seconds each batch.
LOCAL_SETTINGS = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4"}


class NoSpark(Exception):
    """Spark can't be started here; the message says what to do."""


def open_session(
    name: str, master: str | None, settings: Mapping[str, str], *, log: Path, java: Sequence[str] = ()
) -> SparkSession:
    """`master` is Spark's own, or a Connect URL (sc://…); `log` takes what Spark has to say. Raises NoSpark.

    `java` are options of the driver's JVM.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as wrong:
        raise NoSpark(f"{NO_SPARK} ({wrong.name or 'pyspark'} is missing)") from None
    is_submitted = SUBMITTED in os.environ and not master
    master = master or settings.get("spark.master", LOCAL)
    said = {key: value for key, value in settings.items() if key.startswith("spark.") and key != "spark.master"}
    if master.startswith("sc://"):
        builder = SparkSession.builder.remote(master)
    else:
        if not _has_java():
            raise NoSpark(NO_JAVA)
        builder = SparkSession.builder if is_submitted else SparkSession.builder.master(master)
        is_local = master.startswith("local") and not is_submitted
        said = {**driver_settings(log, java), **(LOCAL_SETTINGS if is_local else {}), **said}
        if is_local:
            # Spark's own choice is whatever python3 is on the path, which may know nothing of us.
            os.environ.setdefault("PYSPARK_PYTHON", worker_python())
    builder = builder.appName(name)
    for key, value in said.items():
        builder = builder.config(key, value)
    _silence_query_context()
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))  # plans and their options may be in it
        with filtered(log):
            if not master.startswith("sc://"):
                _start_jvm({"spark.master": master, "spark.app.name": name, **said})
            return builder.getOrCreate()
    except Exception as wrong:
        raise NoSpark(f"Spark at {master} can't be reached or started: {said_by(wrong)}") from None


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Left to PySpark, the JVM would have every setting on its command line. One that spark-submit started is there."""
    from pyspark import SparkConf, SparkContext

    started: Any = SparkContext
    started._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(shown_to_all(settings.items()))))


def reach_without_session(url: str, settings: Mapping[str, str], *, log: Callable[[], Path]) -> Folder:
    """A folder where no Spark runs: a URL is reached by a JVM of its own, which has a log. Raises StorageFailed."""
    if not is_url(url):
        return LocalFolder(Path(url))
    from pyspark.errors import PySparkException

    if not _has_java():
        raise StorageFailed(f"{url}: it is reached through Java (17 or newer), and none was found")
    kept = log()
    with filtered(kept):
        try:
            return folder_without_session(url, {**driver_settings(kept), **settings})
        except PySparkException as wrong:
            raise StorageFailed(f"{url}: the JVM that reaches it can't be started: {said_by(wrong)}") from None


def _silence_query_context() -> None:
    """PySpark writes every mistake in a query to standard error, with its stack, before it raises it."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def driver_settings(log: Path, java: Sequence[str] = ()) -> dict[str, str]:
    """The driver is a JVM beside us: our terminal is for progress, so its log goes to a file."""
    options = f'"-Dlog4j2.configurationFile={LOGGING.as_uri()}" "-Dmoldau.spark.log={log.absolute()}"'
    said = " ".join((options, *java))
    return {"spark.ui.showConsoleProgress": "false", "spark.driver.extraJavaOptions": said}


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return bool(shutil.which("java") or (home and Path(home, "bin", "java").exists()))
