"""The HTTP application: Burrow's v3 paths with its answers, `/metrics`, `/health` and `/ready`."""

from __future__ import annotations

import json
import logging
import re
import socket
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from moldau.core.exposition import CONTENT_TYPE
from moldau.monitor.burrow_json import Json, consumer_json, status_json
from moldau.monitor.judging import Judged
from moldau.monitor.rules import GroupVerdict, Status
from moldau.monitor.service import Monitor
from moldau.monitor.serving.configuration import Configuration
from moldau.monitor.serving.metrics.pages import Pages, zipped
from moldau.monitor.watching import Watch

CHANGES_SHOWN_MAX = 1_000
BODY_BYTES_MAX = 10_000
LEVELS = {
    "trace": logging.DEBUG, "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING,
    "warn": logging.WARNING, "error": logging.ERROR, "fatal": logging.CRITICAL,
}  # fmt: skip
SHOWN_LEVELS = {10: "debug", 20: "info", 30: "warn", 40: "error", 50: "fatal"}

Answer = Callable[[Request], Response]


class NotThere(Exception):
    """A name in the path stands for nothing."""


def application(monitor: Monitor) -> Starlette:
    answers = Answers(monitor, Configuration(monitor))
    cluster = "/v3/kafka/{cluster}"
    consumer = f"{cluster}/consumer/{{consumer}}"
    routes: list[tuple[str, Answer, str]] = [
        ("/burrow/admin", answers.admin, "GET"),
        ("/burrow/admin/ready", answers.admin_ready, "GET"),
        ("/health", answers.health, "GET"),
        ("/ready", answers.ready, "GET"),
        ("/metrics", answers.metrics, "GET"),
        ("/v3/kafka", answers.clusters, "GET"),
        (cluster, answers.cluster, "GET"),
        (f"{cluster}/topic", answers.topics, "GET"),
        (f"{cluster}/topic/{{topic}}", answers.topic, "GET"),
        (f"{cluster}/topic/{{topic}}/consumers", answers.topic_consumers, "GET"),
        (f"{cluster}/consumer", answers.consumers, "GET"),
        (consumer, answers.consumer, "GET"),
        (consumer, answers.forget, "DELETE"),
        (f"{consumer}/topic/{{topic}}", answers.forget, "DELETE"),
        (f"{consumer}/status", answers.status, "GET"),
        (f"{consumer}/lag", answers.lag, "GET"),
        (f"{consumer}/changes", answers.changes, "GET"),
        ("/v3/config", answers.config, "GET"),
        ("/v3/config/{kind}", answers.config_list, "GET"),
        ("/v3/config/{kind}/{name}", answers.config_detail, "GET"),
        ("/v3/admin/loglevel", answers.log_level, "GET"),
    ]
    made = [Route(path, _guarded(answer), methods=[method]) for path, answer, method in routes]
    made.append(Route("/v3/admin/loglevel", answers.set_log_level, methods=["POST"]))
    return Starlette(routes=made, exception_handlers={HTTPException: _unknown_path})


def _guarded(answer: Answer) -> Callable[[Request], Any]:
    """Answers are computed in a thread: some of them are of thousands of groups."""

    async def respond(request: Request) -> Response:
        try:
            return await run_in_threadpool(answer, request)
        except NotThere as wrong:
            return _error(request, 404, str(wrong))

    return respond


async def _unknown_path(_: Request, wrong: Exception) -> Response:
    status = wrong.status_code if isinstance(wrong, HTTPException) else 500
    message = "invalid request type" if status == 404 else "method not allowed"
    return JSONResponse({"error": True, "message": message, "result": {}}, status)


def _asked(request: Request) -> Json:
    return {"url": request.url.path, "host": socket.gethostname()}


def _answer(request: Request, message: str, code: int = 200, **more: object) -> Response:
    content = {"error": False, "message": message, **more, "request": _asked(request)}
    return Response(json.dumps(content), code, media_type="application/json")


def _error(request: Request, status: int, message: str) -> Response:
    return JSONResponse({"error": True, "message": message, "request": _asked(request)}, status)


def takes_gzip(accepted: str) -> bool:
    """By the header of the request; a quality of zero refuses it."""
    for each in accepted.lower().split(","):
        name, _, quality = each.partition(";")
        if name.strip() in {"gzip", "*"}:
            return not re.fullmatch(r"q=0(\.0*)?", quality.strip())
    return False


class Answers:
    def __init__(self, monitor: Monitor, configuration: Configuration) -> None:
        self.monitor = monitor
        self.configuration = configuration
        self.pages = Pages(monitor)
        monitor.listeners.append(self.pages.looked)

    def _watch(self, request: Request, message: str = "cluster not found") -> Watch:
        found = self.monitor.watches.get(request.path_params["cluster"])
        if found is None:
            raise NotThere(message)
        return found

    def _state(self, request: Request, message: str = "cluster not found") -> Judged:
        """Of a cluster that was not looked at yet, nothing is known."""
        state = self._watch(request, message).state
        if state is None:
            raise NotThere(message)
        return state

    def admin(self, _: Request) -> Response:
        return PlainTextResponse("GOOD")

    def admin_ready(self, _: Request) -> Response:
        return PlainTextResponse("READY") if self.monitor.is_ready else PlainTextResponse("STARTING", 503)

    def health(self, _: Request) -> Response:
        sick = self.monitor.sick()
        return JSONResponse({"status": "sick" if sick else "healthy", "reasons": sick}, 503 if sick else 200)

    def ready(self, _: Request) -> Response:
        clusters = {
            name: {"looked_at": each.state is not None, "failure": each.failure}
            for name, each in self.monitor.watches.items()
        }
        ready = self.monitor.is_ready
        content = {"status": "ready" if ready else "starting", "clusters": clusters}
        return JSONResponse(content, 200 if ready else 503)

    def metrics(self, request: Request) -> Response:
        headers = {"Content-Type": CONTENT_TYPE, "Vary": "Accept-Encoding"}
        if not takes_gzip(request.headers.get("accept-encoding", "")):
            return StreamingResponse(self.pages.text(), headers=headers)
        return StreamingResponse(zipped(self.pages.text()), headers={**headers, "Content-Encoding": "gzip"})

    def clusters(self, request: Request) -> Response:
        return _answer(request, "cluster list returned", clusters=[*self.monitor.watches])

    def cluster(self, request: Request) -> Response:
        module = self.configuration.cluster(self._watch(request, "cluster module not found").name)
        return _answer(request, "cluster module detail returned", module=module)

    def topics(self, request: Request) -> Response:
        return _answer(request, "topic list returned", topics=self._state(request).topics)

    def topic(self, request: Request) -> Response:
        look = self._state(request, "cluster or topic not found").look
        topic = look.layout.topics.get(request.path_params["topic"])
        if topic is None:
            raise NotThere("cluster or topic not found")
        offsets = [look.ends[each.place] for each in topic.partitions if each.place in look.ends]
        return _answer(request, "topic offsets returned", offsets=offsets)

    def topic_consumers(self, request: Request) -> Response:
        verdicts, topic = self._state(request).verdicts, request.path_params["topic"]
        names = [name for name, each in verdicts.items() if any(part.topic == topic for part in each.partitions)]
        return _answer(request, "consumers of topic returned", consumers=names)

    def consumers(self, request: Request) -> Response:
        return _answer(request, "consumer list returned", consumers=[*self._state(request).verdicts])

    def consumer(self, request: Request) -> Response:
        message = "cluster or consumer not found"
        state, group = self._state(request, message), request.path_params["consumer"]
        if group not in state.verdicts:
            raise NotThere(message)
        watch = self._watch(request)
        with watch.lock:
            topics = consumer_json(state, watch.windows, group)
        return _answer(request, "consumer detail returned", topics=topics)

    def status(self, request: Request) -> Response:
        return self._verdict(request, show_all=False)

    def lag(self, request: Request) -> Response:
        return self._verdict(request, show_all=True)

    def _verdict(self, request: Request, *, show_all: bool) -> Response:
        cluster, group = request.path_params["cluster"], request.path_params["consumer"]
        watch = self.monitor.watches.get(cluster)
        state = None if watch is None else watch.state
        verdict = None if state is None else state.verdicts.get(group)
        code = 200
        if verdict is None:
            verdict, code = GroupVerdict(cluster, group, Status.NOTFOUND, 1.0, (), None, 0), 404
        shown = status_json(verdict, show_all=show_all)
        return _answer(request, "consumer status returned", code, status=shown)

    def changes(self, request: Request) -> Response:
        """When the group's status was another one: ours, Burrow remembers none."""
        watch, history = self._watch(request), self.monitor.history
        found = history.changes(watch.name, request.path_params["consumer"], CHANGES_SHOWN_MAX) if history else []
        shown = [
            {
                "at": each.at_ms,
                "before": each.before.name,
                "status": each.status.name,
                "totallag": each.lag,
                "max_lag_seconds": each.lag_seconds,
            }
            for each in found
        ]
        return _answer(request, "consumer changes returned", changes=shown)

    def forget(self, request: Request) -> Response:
        watch = self.monitor.watches.get(request.path_params["cluster"])
        if watch is not None:
            watch.forget(request.path_params["consumer"], request.path_params.get("topic"))
        return _answer(request, "consumer group removed")

    def config(self, request: Request) -> Response:
        return _answer(request, "main config returned", **self.configuration.main())

    def config_list(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        modules = self.configuration.modules(kind)
        if modules is None:
            raise HTTPException(404)
        return _answer(request, "module list returned", coordinator=kind, modules=modules)

    def config_detail(self, request: Request) -> Response:
        kind, name = request.path_params["kind"], request.path_params["name"]
        if name not in (self.configuration.modules(kind) or ()):
            raise NotThere(f"{kind} module not found")
        module = self.configuration.module(kind, name)
        return _answer(request, f"{kind} module detail returned", module=module)

    def log_level(self, request: Request) -> Response:
        level = logging.getLogger().getEffectiveLevel()
        return _answer(request, "log level returned", level=SHOWN_LEVELS.get(level, logging.getLevelName(level)))

    async def set_log_level(self, request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_BYTES_MAX:
                return _error(request, 413, "message body too large")
        try:
            asked = json.loads(body)["level"].lower()
        except (ValueError, KeyError, TypeError, AttributeError):
            return _error(request, 400, "could not decode message body")
        if asked not in LEVELS:
            return _error(request, 404, "unknown log level")
        logging.getLogger().setLevel(LEVELS[asked])
        return _answer(request, "set log level")
