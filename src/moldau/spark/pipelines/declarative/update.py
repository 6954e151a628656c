"""One update of a project: its definitions are read and handed to Spark, which runs every flow up to what is there."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.spark.pipelines.declarative.elements import TABLES, Elements
from moldau.spark.pipelines.declarative.project import Project, spec_of
from moldau.spark.pipelines.declarative.server import ConnectServer
from moldau.spark.pipelines.running.reasons import is_permanent, said_by

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

ALL = "all"
_FLOW_EVENT = re.compile(r"Flow '?([^\s']+)'? (?:(?:is|has) )?([A-Z]+)\b(.*)", re.DOTALL)
_RESOLVING = re.compile(r"Failed to resolve flow: '?([^\s']+?)'?\.?\s*\n(.*)", re.DOTALL)
_ERROR = re.compile(r"^\s*Error:\s*", re.MULTILINE)


class Step(Enum):
    """How far a flow is in an update; the values are Spark's words."""

    QUEUED = "QUEUED"
    PLANNING = "PLANNING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    STOPPED = "STOPPED"
    IDLE = "IDLE"
    EXCLUDED = "EXCLUDED"


class Failure(NamedTuple):
    reason: str
    is_permanent: bool = False  # the next attempt would fail in the same way


class FlowEvent(NamedTuple):
    flow: str
    step: Step
    failure: Failure | None = None


class ProjectFailed(Exception):
    def __init__(self, reason: str, *, is_permanent: bool) -> None:
        super().__init__(reason)
        self.is_permanent = is_permanent


class WrongDefinition(ProjectFailed):
    """The project itself is wrong, or Spark takes it for wrong."""


class UpdateFailed(ProjectFailed):
    """Some flow failed while it ran."""


def flow_event(message: str) -> FlowEvent | None:
    """What Spark says about a flow; None for what it says about the run as a whole."""
    resolving = _RESOLVING.match(message)
    if resolving:
        return FlowEvent(resolving[1], Step.FAILED, _failure(resolving[2]))
    found = _FLOW_EVENT.match(message)
    if not found or found[2] not in Step.__members__:
        return None
    step = Step[found[2]]
    return FlowEvent(found[1], step, _failure(found[3]) if step is Step.FAILED else None)


def _failure(text: str) -> Failure:
    told = Exception(_ERROR.split(text.strip(" .\n"), maxsplit=1)[-1] or "failed")
    return Failure(said_by(told), is_permanent(told))


class Update:
    """`on_elements` hears what is defined before anything runs, `on_event` what happens to flows."""

    def __init__(
        self,
        server: ConnectServer,
        project: Project,
        *,
        on_elements: Callable[[Elements], None],
        on_event: Callable[[FlowEvent], None],
    ) -> None:
        self._server = server
        self._project = project
        self._on_elements = on_elements
        self._on_event = on_event
        self._session: SparkSession | None = None
        self._failures: dict[str, Failure] = {}

    def run(self, *, dry: bool = False, full_refresh: Sequence[str] = ()) -> None:
        """Raises WrongDefinition, or UpdateFailed, or what Spark raises when it has gone."""
        from pyspark.errors import AnalysisException, ParseException

        spec = spec_of(self._project)
        with self._server.session(spec.configuration) as self._session:
            try:
                self._run(self._session, spec, dry=dry, full_refresh=full_refresh)
            except ProjectFailed:
                raise
            except (AnalysisException, ParseException) as wrong:
                raise self._failed(wrong, WrongDefinition) from None
            except Exception as wrong:
                raise self._failed(wrong, UpdateFailed) from None

    def interrupt(self) -> None:
        """From another thread: ends it now, wherever it is."""
        if self._session is not None:
            self._session.stop()

    def define(self) -> Elements:
        """Only what is defined, for a drawing."""
        spec = spec_of(self._project)
        with self._server.session(spec.configuration) as self._session:
            return self._defined(self._session, spec)[1]

    def _run(self, session: SparkSession, spec: Any, *, dry: bool, full_refresh: Sequence[str]) -> None:
        from pyspark.pipelines.spark_connect_pipeline import start_run

        graph, elements = self._defined(session, spec)
        self._on_elements(elements)
        everything = ALL in full_refresh
        anew = [] if everything else _tables(full_refresh, elements)
        results = start_run(
            session,  # type: ignore[arg-type]
            graph,
            full_refresh=anew,
            full_refresh_all=everything,
            refresh=[],
            dry=dry,
            storage=spec.storage,
        )
        for result in results:
            if "pipeline_event_result" in result:
                self._note(flow_event(result["pipeline_event_result"].event.message))

    def _note(self, event: FlowEvent | None) -> None:
        if event is None:
            return
        if event.failure is not None:
            self._failures[event.flow] = event.failure
        elif event.step is Step.STARTING:  # and not when it has completed: Spark says that of attempts that fail, too
            self._failures.pop(event.flow, None)
        self._on_event(event)

    def _failed(self, wrong: Exception, kind: type[ProjectFailed]) -> ProjectFailed:
        """What Spark said of single flows; the failure of the run only says that there were some."""
        if not self._failures:
            return kind(said_by(wrong), is_permanent=is_permanent(wrong))
        told = "; ".join(f"{flow}: {failure.reason}" for flow, failure in self._failures.items())
        return kind(told, is_permanent=any(failure.is_permanent for failure in self._failures.values()))

    def _defined(self, session: SparkSession, spec: Any) -> tuple[str, Elements]:
        from pyspark.pipelines.cli import register_definitions
        from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
        from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph

        from moldau.spark.pipelines.declarative.registry import NotingRegistry, WrongSql

        spark: Any = session
        graph = create_dataflow_graph(
            spark,
            default_catalog=spec.catalog,
            default_database=spec.database,
            sql_conf=_of_a_session(session, spec.configuration),
        )
        elements = Elements()
        registry = NotingRegistry(SparkConnectGraphElementRegistry(spark, graph), spark.client, elements)
        with _said_to(self._project.home / "definitions.log"):
            try:
                register_definitions(self._project.spec_file, registry, spec, spark, graph)
            except WrongSql as wrong:
                raise WrongDefinition(str(wrong), is_permanent=True) from None
            except Exception as wrong:
                why = where_and_why(wrong, self._project.folder)
                raise WrongDefinition(why, is_permanent=not may_pass(wrong)) from None
        return graph, elements


def _tables(names: Sequence[str], elements: Elements) -> list[str]:
    """Spark runs nothing, and calls it done, where it knows no table of that name; it knows no sinks by name."""
    for name in names:
        output = elements.output(name)
        if output is None or output.kind not in TABLES:
            allowed = ", ".join([*elements.tables(), ALL])
            raise WrongDefinition(f"--full-refresh {name}: allowed is one of {allowed}", is_permanent=True)
    return list(names)


def _of_a_session(session: SparkSession, configuration: Mapping[str, str]) -> dict[str, str]:
    """What flows may set, each of which fails else. The rest is what a server is started with, such as its jars."""
    from pyspark.errors import PySparkException

    settings = {}
    for key, value in configuration.items():
        try:
            session.conf.set(key, value)
        except PySparkException as wrong:
            if not (wrong.getCondition() or "").startswith("CANNOT_MODIFY"):
                raise
        else:
            settings[key] = value
    return settings


@contextmanager
def _said_to(log: Path) -> Iterator[None]:
    """Spark tells on standard output which files it reads, each time; so may the files."""
    log.parent.mkdir(parents=True, exist_ok=True)  # a far server, and a storage elsewhere, need nothing there
    with log.open("w") as file, redirect_stdout(file):
        yield


def where_and_why(wrong: Exception, folder: Path) -> str:
    """The line of the project's own files that led to it, and the reason."""
    reason = said_by(wrong)
    if isinstance(wrong, SyntaxError) and wrong.filename:
        return f"{_short(wrong.filename, folder)}:{wrong.lineno or 1}: {wrong.msg}"
    if not type(wrong).__module__.startswith("pyspark"):
        reason = f"{type(wrong).__name__}: {reason}"
    own = [frame for frame in traceback.extract_tb(wrong.__traceback__) if Path(frame.filename).is_relative_to(folder)]
    return f"{_short(own[-1].filename, folder)}:{own[-1].lineno}: {reason}" if own else reason


def may_pass(wrong: Exception) -> bool:
    """Of definitions: Spark, or what they look at, was out of reach; anything else is what the files say."""
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    if type(wrong) is SparkConnectGrpcException or isinstance(wrong, (ConnectionError, TimeoutError)):
        return True
    return "Traceback (most recent call last)" in str(wrong) and not is_permanent(wrong)


def _short(name: str, folder: Path) -> str:
    path = Path(name)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else name
