"""What executors lack to run a pipeline, in words: a task on each of them looks, before anything is started."""

from __future__ import annotations

import json
import platform
import shlex
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

from moldau.client.security import ClientSettings
from moldau.spark.clients.settings import client_settings
from moldau.spark.formats.registry.options import registry_places
from moldau.spark.option_values import OptionValues
from moldau.spark.pipelines.plan import Connector, Plan
from moldau.spark.pipelines.running.frames.sources import topic_options
from moldau.spark.pipelines.running.reasons import said_by, spark_failures
from moldau.spark.pipelines.running.sessions import executor_probe
from moldau.spark.record_formats import SIDES, format_name
from moldau.spark.registry_names import uses_registry
from moldau.spark.storage import StorageFailed, folder_of, is_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = ("moldau", "confluent-kafka", "pyarrow", "pandas", "msgspec", "fastavro")
PACKAGES_OF = {
    Connector.DELTA: ("deltalake",),
    Connector.ICEBERG: ("pyiceberg",),
    Connector.DATABASE: ("adbc-driver-postgresql", "adbc-driver-sqlite"),
}
TOPICS = (Connector.TOPIC, Connector.PATTERN)
PROTOBUF = "protobuf"  # the format and the package
SETTLED_S = 3.0  # executors that register come one after the other
SETTLE_S_MAX = 60.0
ROUNDS_MAX = 10
TASKS_OVER_CONNECT = 8  # how many executors there are is not told over Connect


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a pipeline needs where its tasks run; packages by their versions here."""

    python: str
    packages: Mapping[str, str]
    clusters: tuple[ClientSettings, ...]
    registries: tuple[tuple[str, int], ...] = ()  # that readers ask: host and port of each URL


@dataclass(frozen=True, slots=True)
class Executor:
    host: str
    folder: str
    python: str
    lacks: tuple[str, ...]

    def __str__(self) -> str:
        where = f"executor on {self.host} in {self.folder}"
        if self.lacks:
            return f"{where} lacks {'; '.join(self.lacks)}"
        return f"{where}: Python {self.python}, packages and brokers are there"


def wanted_by(plan: Plan) -> Wanted:
    endpoints = [*(one.endpoint for one in plan.sources), *(one.endpoint for one in plan.sinks)]
    names = [*PACKAGES, *(name for one in endpoints for name in PACKAGES_OF.get(one.connector, ()))]
    clusters = {
        client_settings(OptionValues(topic_options(one, plan)), side="consumer")
        for one in endpoints
        if one.connector in TOPICS
    }
    said = [topic_options(one.endpoint, plan) for one in plan.sources if one.endpoint.connector in TOPICS]
    asking = [options for options in said if any(uses_registry(format_name(options, side), options) for side in SIDES)]
    if any(format_name(options, side).lower() == PROTOBUF for options in asking for side in SIDES):
        names.append(PROTOBUF)
    packages = {name: metadata.version(name) for name in dict.fromkeys(names)}
    registries = {place for options in asking for place in registry_places(options)}
    return Wanted(platform.python_version(), packages, tuple(sorted(clusters)), tuple(sorted(registries)))


@dataclass(frozen=True, slots=True)
class Found:
    """`silent` is the number of executors that no task of ours ran on."""

    executors: list[Executor]
    silent: int = 0

    @property
    def problem(self) -> str | None:
        """Why a pipeline should not be started; None where nothing is in its way."""
        lacking = sum(bool(executor.lacks) for executor in self.executors)
        if lacking:
            return f"{lacking} of {len(self.executors)} executors lack something"
        if self.silent:
            every = len(self.executors) + self.silent
            return f"{self.silent} of {every} executors ran no task: other jobs keep them busy, or none begins there"
        return None


def look_at(spark: SparkSession, wanted: Wanted) -> Found:
    """All executors that there are. Raises what Spark raises where a task in Python does not even begin."""
    from pyspark import cloudpickle

    by_value: Any = cloudpickle
    by_value.register_pickle_by_value(executor_probe)
    try:
        return _looked_at(spark, wanted)
    finally:
        by_value.unregister_pickle_by_value(executor_probe)


def _looked_at(spark: SparkSession, wanted: Wanted) -> Found:
    ask = _question(dict(wanted.packages), [dict(each) for each in wanted.clusters], list(wanted.registries))
    if not hasattr(spark, "_sc"):
        return Found(sorted({_executor(text) for text in _over_connect(spark, ask)}, key=str))
    context = spark.sparkContext
    _settled(lambda: executor_count(spark))

    def answers() -> list[str]:
        tasks = 2 * max(executor_count(spark), context.defaultParallelism)
        return context.parallelize(range(tasks), tasks).map(lambda _: ask()).collect()

    return gathered(answers, lambda: executor_count(spark))


def gathered(answers: Callable[[], Iterable[str]], count: Callable[[], int]) -> Found:
    """Asks again until each of `count` has answered: Spark gives tasks to whoever is free, and not to each one."""
    seen: dict[tuple[str, str], Executor] = {}
    for _ in range(ROUNDS_MAX):
        for each in map(_executor, answers()):
            seen[each.host, each.folder] = each
        if len(seen) >= count():
            break
    return Found([seen[key] for key in sorted(seen)], max(0, count() - len(seen)))


def _question(
    packages: dict[str, str], clusters: list[dict[str, str]], registries: list[tuple[str, int]]
) -> Callable[[], str]:
    from functools import partial

    return partial(executor_probe.probe, packages, clusters, registries)


def _over_connect(spark: SparkSession, ask: Callable[[], str]) -> list[str]:
    def asked(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"told": [ask()]})

    frame = spark.range(0, TASKS_OVER_CONNECT, 1, TASKS_OVER_CONNECT).mapInArrow(asked, "told string")
    return [row.told for row in frame.collect()]


def _executor(text: str) -> Executor:
    told = json.loads(text)
    return Executor(told["host"], told["folder"], told["python"], tuple(told["lacks"]))


def executor_count(spark: SparkSession) -> int:
    context: Any = spark.sparkContext
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1  # the driver is one of them


def _settled(count: Callable[[], int]) -> None:
    """Waits for a number to stop growing."""
    deadline_s = time.monotonic() + SETTLE_S_MAX
    found, since_s = count(), time.monotonic()
    while time.monotonic() < deadline_s and (found == 0 or time.monotonic() - since_s < SETTLED_S):
        time.sleep(0.1)
        if count() != found:
            found, since_s = count(), time.monotonic()


def pythons_of(spark: SparkSession, wanted: Wanted) -> list[str]:
    """Where no Python task runs: what the executors' Python is, asked without it."""
    context: Any = spark.sparkContext
    program, tasks = context.pythonExec, 2 * max(2, context.defaultParallelism)
    command, numbers = context._jvm.java.util.ArrayList(), context._jvm.java.util.ArrayList()
    for word in ("sh", "-c", f'echo "$(hostname): $({shlex.quote(program)} --version 2>&1)"'):
        command.add(word)
    for number in range(tasks):
        numbers.add(str(number))
    answers = set(context._jsc.parallelize(numbers, tasks).pipe(command).collect())
    needed = f"Python {wanted.python.rpartition('.')[0]} is needed, as the driver has it, by the name of {program}"
    return [f"executor on {line}; {needed}" for line in sorted(answers)]


def checkpoint_problem(spark: SparkSession, checkpoints: str) -> str | None:
    """Executors write a file each, and the driver looks for all of them."""
    name, tasks = f"_moldau-check-{uuid.uuid4().hex}", 2 * max(2, executor_count(spark))
    url = checkpoints if is_url(checkpoints) else f"file://{checkpoints}"
    try:
        parent = folder_of(checkpoints, spark)
        frame = spark.range(0, tasks, 1, tasks).selectExpr("cast(id as string) as value")
        try:
            frame.write.text(f"{url}/{name}")
            found = [one for one in folder_of(f"{checkpoints}/{name}", spark).names() if one.startswith("part-")]
        finally:
            parent.delete(name)
    except spark_failures() as wrong:
        return f"the checkpoint at {checkpoints} can't be written from executors: {said_by(wrong)}"
    except StorageFailed as wrong:
        return f"the checkpoint can't be reached: {wrong}"
    if len(found) == tasks:
        return None
    return f"the checkpoint at {checkpoints} is a folder that executors do not share: name a URL that all of them reach"
