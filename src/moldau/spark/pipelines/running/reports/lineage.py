"""What a pipeline reads and writes, told as OpenLineage's run events: to a file, or to a server over HTTP."""

from __future__ import annotations

import json
import queue
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from moldau.core.clock import Clock
from moldau.spark.pipelines.plan import Connector, Endpoint, Plan
from moldau.spark.pipelines.running.frames.sources import BOOTSTRAP, topic_options
from moldau.spark.pipelines.running.reports.rejected import sources_of

if TYPE_CHECKING:
    from moldau.spark.pipelines.running.runner import Running

PRODUCER = "https://pypi.org/project/moldau/"
SPEC = "https://openlineage.io/spec/"
EVENT_SCHEMA = f"{SPEC}2-0-2/OpenLineage.json#/$defs/RunEvent"
SERVER_PATH = "/api/v1/lineage"
NAMESPACE = "moldau"
AGAIN_S = 60.0  # a run that goes on is told again and again, so that a server that came later knows it too
ANSWER_S_MAX = 5.0
WAITING_MAX = 1_000  # events; the newest are dropped while a server does not answer

Event = dict[str, Any]
Send = Callable[[Event], None]


def facet(name: str, version: str, **fields: Any) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": f"{SPEC}facets/{version}/{name}.json#/$defs/{name}", **fields}


def dataset(endpoint: Endpoint, plan: Plan) -> dict[str, str]:
    """By OpenLineage's naming: where it is, and what it is called there."""
    if endpoint.connector in (Connector.TOPIC, Connector.PATTERN):
        first = topic_options(endpoint, plan)[BOOTSTRAP].split(",")[0].strip()
        return {"namespace": f"kafka://{first}", "name": endpoint.location}
    if endpoint.connector is Connector.DATABASE:
        return _table(endpoint)
    if endpoint.connector in (Connector.DELTA, Connector.FILES):
        place = urlsplit(endpoint.location)
        if place.scheme and place.netloc:
            return {"namespace": f"{place.scheme}://{place.netloc}", "name": place.path.lstrip("/")}
        return {"namespace": "file", "name": str(Path(place.path).absolute())}
    return {"namespace": endpoint.connector.value, "name": endpoint.location or endpoint.connector.value}


def _table(endpoint: Endpoint) -> dict[str, str]:
    """The URL without the secrets that it may have."""
    url = urlsplit(next((value for key, value in endpoint.options.items() if key.lower() == "url"), ""))
    scheme = "postgres" if url.scheme.startswith("postgres") else url.scheme or "database"
    host = f"{url.hostname or ''}{f':{url.port}' if url.port else ''}"
    database = url.path.strip("/")
    return {"namespace": f"{scheme}://{host}", "name": ".".join(part for part in (database, endpoint.location) if part)}


@dataclass(slots=True)
class Run:
    """What was told of a query so far."""

    run_id: str | None = None
    failures: int = 0
    told_s: float = 0.0


class Lineage:
    """Follows a runner's queries: each start of one is a run."""

    def __init__(self, plan: Plan, send: Send, *, clock: Clock) -> None:
        self._plan = plan
        self._send = send
        self._clock = clock
        self._runs: dict[str, Run] = {}

    def show(self, queries: Sequence[Running]) -> None:
        for one in queries:
            self._follow(one)

    def finish(self, queries: Sequence[Running]) -> None:
        self.show(queries)

    def _follow(self, one: Running) -> None:
        run = self._runs.setdefault(one.job.sink.name, Run())
        state = one.state.value
        # A query may have started and failed between two looks.
        for _ in range(one.restarts + (state == "failed") - run.failures):
            run.failures += 1
            self._begin(one, run)
            self._end(one, run, "FAIL")
        if state == "running" and run.run_id is None:
            self._begin(one, run)
        elif state in ("done", "stopped"):
            self._end(one, run, "COMPLETE")
        elif run.run_id is not None and time.monotonic() - run.told_s >= AGAIN_S:
            self._tell(one, run, "RUNNING")

    def _begin(self, one: Running, run: Run) -> None:
        if run.run_id is None:
            run.run_id = str(uuid.uuid4())
            self._tell(one, run, "START")

    def _end(self, one: Running, run: Run, kind: str) -> None:
        if run.run_id is not None:
            self._tell(one, run, kind)
            run.run_id = None

    def _tell(self, one: Running, run: Run, kind: str) -> None:
        run.told_s = time.monotonic()
        facets = {}
        if kind == "FAIL":
            said = facet("ErrorMessageRunFacet", "1-0-1", message=one.reason or "", programmingLanguage="PYTHON")
            facets["errorMessage"] = said
        at = datetime.fromtimestamp(self._clock.now_ms() / 1000, tz=UTC).isoformat(timespec="milliseconds")
        self._send(
            {
                "eventType": kind,
                "eventTime": at,
                "producer": PRODUCER,
                "schemaURL": EVENT_SCHEMA,
                "run": {"runId": run.run_id, "facets": facets},
                "job": self._job(one),
                "inputs": [
                    dataset(source.endpoint, self._plan) for source in sources_of(one.job.sink.query, self._plan)
                ],
                "outputs": [self._output(one)],
            }
        )

    def _job(self, one: Running) -> dict[str, Any]:
        kind = "BATCH" if one.job.schedule.is_once else "STREAMING"
        facets = {
            "jobType": facet("JobTypeJobFacet", "2-0-4", processingType=kind, integration="SPARK", jobType="QUERY")
        }
        if one.job.sink.query.sql:
            facets["sql"] = facet("SQLJobFacet", "1-1-0", query=one.job.sink.query.sql)
        return {"namespace": NAMESPACE, "name": one.job.query_name, "facets": facets}

    def _output(self, one: Running) -> dict[str, Any]:
        written = one.job.frame.schema
        # A topic's columns are those of its values.
        value = next((each.dataType for each in written.fields if each.name == "value"), None)
        columns = getattr(value, "fields", None) or written.fields
        fields = [{"name": each.name, "type": each.dataType.simpleString()} for each in columns]
        schema = facet("SchemaDatasetFacet", "1-2-0", fields=fields)
        return {**dataset(one.job.sink.endpoint, self._plan), "facets": {"schema": schema}}


def sender(target: str, say: Callable[[str], None]) -> Sender:
    """`target` is an HTTP URL, or a file that gets a line for each event."""
    url = urlsplit(target)
    if url.scheme in ("http", "https"):
        full = target if url.path.strip("/") else f"{target.rstrip('/')}{SERVER_PATH}"
        return Sender(lambda event: _post(full, event), target=full, say=say)
    path = Path(target.removeprefix("file://"))
    return Sender(lambda event: _append(path, event), target=str(path), say=say)


class Sender:
    """Sends in the order of events, from a thread of its own: a pipeline never waits for who keeps its lineage."""

    def __init__(self, deliver: Send, *, target: str, say: Callable[[str], None]) -> None:
        self._deliver = deliver
        self._target = target
        self._say = say
        self._waiting: queue.Queue[Event | None] = queue.Queue(maxsize=WAITING_MAX)
        self._has_complained = False
        self._thread = threading.Thread(target=self._run, name="lineage", daemon=True)
        self._thread.start()

    def __call__(self, event: Event) -> None:
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._complain("more events wait than are kept")

    def close(self) -> None:
        """Waits a moment for what was not sent yet."""
        try:
            self._waiting.put(None, timeout=ANSWER_S_MAX)
        except queue.Full:
            return
        self._thread.join(2 * ANSWER_S_MAX)

    def _run(self) -> None:
        while (event := self._waiting.get()) is not None:
            try:
                self._deliver(event)
            except (OSError, ValueError, HTTPException) as wrong:
                self._complain(str(getattr(wrong, "reason", None) or wrong))

    def _complain(self, why: str) -> None:
        if not self._has_complained:
            self._say(f"lineage does not reach {self._target}: {why}; the pipeline goes on without")
        self._has_complained = True


def _post(url: str, event: Mapping[str, Any]) -> None:
    body = json.dumps(event).encode()
    request = Request(url, data=body, headers={"Content-Type": "application/json"}, method="POST")
    with urlopen(request, timeout=ANSWER_S_MAX) as answer:
        answer.read()


def _append(path: Path, event: Mapping[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")
