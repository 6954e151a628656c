"""Requests as they are answered: how many, of whom, how long they took, with which errors and how many bytes.

A broker with metrics answers through this (`Dispatch.meter`), or through its quotas, which then tell of each answer.
"""

from __future__ import annotations

from asyncio import Future
from bisect import bisect_left
from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from moldau.broker.metrics.clients import ClientCounts, Clients
from moldau.broker.metrics.outcomes import NONE, Outcome, outcome_of
from moldau.broker.network.outbox import Part
from moldau.broker.requests.answers import Encoded, Relayed
from moldau.broker.requests.delayed_response import DelayedResponse
from moldau.broker.requests.dispatch import Begun, Route, Unanswered
from moldau.replication.traffic import TopicTraffic, Traffic
from moldau.wire.api import ApiKey
from moldau.wire.messages import FetchRequest, ProduceRequest

if TYPE_CHECKING:
    from moldau.broker.context import Peer, Services
    from moldau.broker.requests.dispatch import Dispatch

MS = 1_000_000
BOUNDS_NS = tuple(
    round(each * MS)
    for each in (
        0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000,
    )
)  # fmt: skip
"""The upper ends of what durations are counted in; what takes longer is in one more."""

UNKNOWN = Outcome([NONE], [])
"""Of what another broker answered, and this one sent on."""

FETCH_CONSUMER, FETCH_FOLLOWER = "FetchConsumer", "FetchFollower"


class Pauses:
    """That clients had to make."""

    __slots__ = ("count", "total_ms")

    def __init__(self) -> None:
        self.count = self.total_ms = 0


class RequestCounts:
    """Of one API at one version; a follower's fetches are apart from those of consumers."""

    __slots__ = ("api", "buckets", "bytes_in", "bytes_out", "clients", "count", "errors", "name", "total_ns", "version")

    def __init__(self, api: str, name: str, version: int) -> None:
        self.api = api
        self.name = name
        """What Kafka's metrics call it: Fetch is FetchConsumer or FetchFollower there."""
        self.version = version
        self.count = self.total_ns = self.bytes_in = self.bytes_out = 0
        self.buckets = [0] * (len(BOUNDS_NS) + 1)
        self.errors: dict[int, int] = {}
        self.clients: dict[str | None, ClientCounts] = {}


class MeteredAnswer(Unanswered):
    """A request whose answer comes later, and is counted then."""

    __slots__ = ("_began_ns", "_counts", "_metering", "_size_bytes")

    def __init__(self, begun: Begun, counts: RequestCounts, metering: Metering, size_bytes: int, began_ns: int) -> None:
        super().__init__(begun.answer, begun.route, begun.context.header)
        self._counts, self._metering = counts, metering
        self._size_bytes, self._began_ns = size_bytes, began_ns

    def parts(self) -> list[Part] | None:
        response, header = self.response(), self._header
        parts = None if response is None else self._route.reply(response, header.correlation_id)
        self._metering.answered(self._counts, header.client_id, response, parts, self._size_bytes, self._began_ns)
        return parts


class Metering:
    """Owned by one event loop."""

    def __init__(self, services: Services, traffic: Traffic) -> None:
        self.requests: dict[Route, RequestCounts] = {}
        self.of_followers: dict[Route, RequestCounts] = {}
        self.clients = Clients(services.clock.elapsed_ms)
        self.traffic = traffic
        self.failed = 0
        """Requests whose connections ended for them: they can't be answered, or this broker failed."""
        self.pauses: dict[str, Pauses] = {}
        self.outcome_of: Callable[[Any], Outcome] = outcome_of
        self._topics: dict[str | bytes, TopicTraffic] = {}
        self._services = services

    def answer(self, dispatch: Dispatch, frame: memoryview, peer: Peer) -> list[Part] | Unanswered | None:
        began_ns, size_bytes = perf_counter_ns(), len(frame)
        begun = dispatch.begun(frame, peer)
        if not isinstance(begun, Begun):
            return begun
        counts = self.begun(begun)
        route, context, answer, _ = begun
        if isinstance(answer, Future | DelayedResponse):
            later = MeteredAnswer(begun, counts, self, size_bytes, began_ns)
            return later.parts() if answer.done() else later
        header = context.header
        parts = None if answer is None else route.reply(answer, header.correlation_id)
        self.answered(counts, header.client_id, answer, parts, size_bytes, began_ns)
        return parts

    def begun(self, begun: Begun) -> RequestCounts:
        """What a request is counted in when it is answered. What it produces is counted by topic at once."""
        route, request = begun.route, begun.request
        kind = type(request)
        known = self.requests
        if kind is ProduceRequest:
            for topic in request.topic_data:
                self._traffic_of(topic.name or topic.topic_id).produces += len(topic.partition_data)
        elif kind is FetchRequest and (request.replica_id >= 0 or request.replica_state.replica_id >= 0):
            known = self.of_followers
        return known.get(route) or self._new(route, known)

    def answered(  # noqa: PLR0917
        self,
        counts: RequestCounts,
        client_id: str | None,
        response: Any,
        parts: list[Part] | None,
        size_bytes: int,
        began_ns: int,
    ) -> None:
        """By position: names cost half a microsecond."""
        sent_bytes = 0 if parts is None else sum([len(part) for part in parts])
        error = NONE if response is None else self._note_outcome(counts, response)
        client = counts.clients.get(client_id) or self.clients.of(counts.clients, client_id)
        client.errors[error] = client.errors.get(error, 0) + 1
        client.bytes_in += size_bytes
        client.bytes_out += sent_bytes
        counts.bytes_in += size_bytes
        counts.bytes_out += sent_bytes
        counts.count += 1
        spent_ns = perf_counter_ns() - began_ns
        counts.total_ns += spent_ns
        counts.buckets[bisect_left(BOUNDS_NS, spent_ns)] += 1

    def paused(self, counts: RequestCounts, client_id: str | None, pause_ms: int) -> None:
        """A client has to pause after this request, for a quota."""
        pauses = self.pauses.get(counts.api)
        if pauses is None:
            pauses = self.pauses[counts.api] = Pauses()
        pauses.count += 1
        pauses.total_ms += pause_ms
        client = counts.clients.get(client_id) or self.clients.of(counts.clients, client_id)
        client.pauses += 1
        client.paused_ms += pause_ms

    def forget_topics(self) -> None:
        """Those that are not there any more."""
        image = self._services.controller.image
        gone = [name for name in self.traffic.topics if name not in image.topics]
        for name in gone:
            self.traffic.forget(name)
        if gone:
            self._topics.clear()

    def _note_outcome(self, counts: RequestCounts, response: Any) -> int:
        """Gives the first error in it, or NONE."""
        outcome = self._outcome(response)
        error, errors = NONE, counts.errors
        for code in outcome.codes:
            errors[code] = errors.get(code, 0) + 1
            error = error or code
        if outcome.topics:
            self._note_topics(counts, outcome)
        return error

    def _outcome(self, response: Any) -> Outcome:
        if isinstance(response, Encoded):
            return response.outcome or UNKNOWN
        return UNKNOWN if isinstance(response, Relayed) else self.outcome_of(response)

    def _note_topics(self, counts: RequestCounts, outcome: Outcome) -> None:
        for key, partitions, size_bytes, failed in outcome.topics:
            traffic = self._traffic_of(key)
            if counts.name == FETCH_CONSUMER:
                traffic.fetches += partitions
                traffic.failed_fetches += failed
                traffic.bytes_out += size_bytes
            elif counts.name == FETCH_FOLLOWER:
                traffic.replicated_out += size_bytes
            else:
                traffic.failed_produces += failed

    def _traffic_of(self, key: str | bytes) -> TopicTraffic:
        return self._topics.get(key) or self._find_traffic(key)

    def _find_traffic(self, key: str | bytes) -> TopicTraffic:
        image = self._services.controller.image
        name = key if isinstance(key, str) else image.topic_ids.get(key)
        if name is None or name not in image.topics:
            return self.traffic.gone
        found = self._topics[key] = self.traffic.of(name)
        return found

    def _new(self, route: Route, known: dict[Route, RequestCounts]) -> RequestCounts:
        api = name = route.api.request.__name__.removesuffix("Request")
        if route.api.key == ApiKey.FETCH:
            name = FETCH_FOLLOWER if known is self.of_followers else FETCH_CONSUMER
        counts = known[route] = RequestCounts(api, name, route.version)
        self.clients.follow(counts.clients)
        return counts
