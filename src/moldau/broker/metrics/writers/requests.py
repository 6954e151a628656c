"""Requests: how many of which API and version, how long they took, with which errors, and of whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate, pairwise

from moldau.broker.metrics.metering import BOUNDS_NS, Metering, RequestCounts
from moldau.coordinator.long_work import LongWork, in_slices
from moldau.core.errors import ErrorCode
from moldau.core.exposition import COUNTER, HISTOGRAM, SUMMARY, Exposition, labelled

QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
WINDOW_S = 60.0  # quantiles are of the last one or two of these; Kafka's are of the last five minutes, the newest most
_CODES = {int(code): code.name for code in ErrorCode}
_BOUNDS_S = [each / 1e9 for each in BOUNDS_NS]


class RequestsWriter:
    def __init__(self, metering: Metering, long_work: LongWork) -> None:
        self._metering = metering
        self._long_work = long_work
        self._windows: dict[str, Windows] = {}

    async def __call__(self, out: Exposition, now_s: float) -> None:
        rows = [*self._metering.requests.values(), *self._metering.of_followers.values()]
        self._write_by_api(out, rows, now_s)
        await write_clients(out, rows, self._long_work, left_out=self._metering.clients.left_out)
        write_pauses(out, self._metering)

    def _write_by_api(self, out: Exposition, rows: Sequence[RequestCounts], now_s: float) -> None:
        requests = partial(out.add, "kafka_network_requestmetrics_requests_total", "Requests by API and version.")
        errors = partial(out.add, "kafka_network_requestmetrics_errors_total", "Error codes in answers, NONE as well.")
        received = partial(out.add, "moldau_request_bytes_total", "Bytes of requests.")
        sent = partial(out.add, "moldau_response_bytes_total", "Bytes of answers.")
        times = out.lines("kafka_network_requestmetrics_totaltimems", "Milliseconds until the answer.", SUMMARY)
        histogram = out.lines("moldau_request_duration_seconds", "Seconds until the answer.", HISTOGRAM)
        for name, some in by_name(rows).items():
            for row in some:
                requests({"request": name, "version": row.version}, row.count, COUNTER)
            codes: Counter[int] = Counter()
            for row in some:
                codes.update(row.errors)
            for code, count in codes.items():
                errors({"request": name, "error": _CODES.get(code, str(code))}, count, COUNTER)
            buckets = [sum(each) for each in zip(*(row.buckets for row in some), strict=True)]
            total_ns = sum(row.total_ns for row in some)
            window = self._windows.setdefault(name, Windows())
            times += summary_lines(name, window.recent(buckets, now_s), sum(buckets), total_ns)
            if name not in TOGETHER:
                received({"request": name}, sum(row.bytes_in for row in some), COUNTER)
                sent({"request": name}, sum(row.bytes_out for row in some), COUNTER)
                histogram += histogram_lines(name, buckets, total_ns)


TOGETHER = ("Fetch",)
"""What Kafka has once more under the name of the API, beside those of consumers and followers."""


def by_name(rows: Iterable[RequestCounts]) -> dict[str, list[RequestCounts]]:
    found: dict[str, list[RequestCounts]] = {}
    for row in rows:
        found.setdefault(row.name, []).append(row)
        if row.api != row.name:
            found.setdefault(row.api, []).append(row)
    return found


class Windows:
    """What was counted of late: since a moment one or two windows ago."""

    def __init__(self) -> None:
        self._snapshots: list[tuple[float, Sequence[int]]] = []

    def recent(self, buckets: Sequence[int], now_s: float) -> list[int]:
        known = self._snapshots
        while len(known) > 1 and known[1][0] <= now_s - WINDOW_S:
            del known[0]
        if not known or known[-1][0] <= now_s - WINDOW_S:
            known.append((now_s, buckets))
        since = known[0][1] if len(known) > 1 else [0] * len(buckets)
        return [now - then for now, then in zip(buckets, since, strict=True)]


def quantile_ms(buckets: Sequence[int], quantile: float) -> float:
    """By the shares of the buckets, and evenly within one; 0 where nothing was counted."""
    wanted = quantile * sum(buckets)
    if wanted <= 0:
        return 0.0
    bounds = [0.0, *_BOUNDS_S]
    for (low, high), count, upto in zip(pairwise(bounds), buckets, accumulate(buckets), strict=False):
        if upto >= wanted:
            return 1_000 * (high - (high - low) * (upto - wanted) / count)
    return 1_000 * bounds[-1]


def summary_lines(name: str, recent: Sequence[int], count: int, total_ns: int) -> list[str]:
    metric = "kafka_network_requestmetrics_totaltimems"
    lines = [
        f'{metric}{{request="{name}",quantile="{each}"}} {round(quantile_ms(recent, each), 4)}' for each in QUANTILES
    ]
    lines.append(f'{metric}_sum{{request="{name}"}} {total_ns / 1e6}')
    lines.append(f'{metric}_count{{request="{name}"}} {count}')
    return lines


def histogram_lines(name: str, buckets: Sequence[int], total_ns: int) -> list[str]:
    metric, counts = "moldau_request_duration_seconds", [*accumulate(buckets)]
    lines = [
        f'{metric}_bucket{{request="{name}",le="{bound}"}} {count}'
        for bound, count in zip([*_BOUNDS_S, "+Inf"], counts, strict=True)
    ]
    lines.append(f'{metric}_sum{{request="{name}"}} {total_ns / 1e9}')
    lines.append(f'{metric}_count{{request="{name}"}} {counts[-1]}')
    return lines


async def write_clients(out: Exposition, rows: Iterable[RequestCounts], long_work: LongWork, *, left_out: int) -> None:
    """In slices: there may be thousands of ids, each with as many errors as it made."""
    requests: Counter[tuple[str, str, int]] = Counter()
    received: Counter[str] = Counter()
    sent: Counter[str] = Counter()
    pauses: Counter[str] = Counter()
    paused_ms: Counter[str] = Counter()
    known = [(row.api, client_id or "", client) for row in rows for client_id, client in row.clients.items()]
    async for api, shown, client in in_slices(known, long_work):
        received[shown] += client.bytes_in
        sent[shown] += client.bytes_out
        if client.pauses:
            pauses[shown] += client.pauses
            paused_ms[shown] += client.paused_ms
        for code, count in client.errors.items():
            requests[shown, api, code] += count
    name = "moldau_client_requests_total"
    lines = out.lines(name, "Requests by client id, API and the first error in the answer.", COUNTER)
    async for (client_id, api, code), count in in_slices(requests.items(), long_work):
        labels = labelled({"client_id": client_id, "request": api, "error": _CODES.get(code, str(code))})
        lines.append(f"{name}{labels} {count}")
    name, help_text = "moldau_client_bytes_in_total", "Bytes of requests by client id."
    async for client_id, count in in_slices(received.items(), long_work):
        out.add(name, help_text, {"client_id": client_id}, count, COUNTER)
    name, help_text = "moldau_client_bytes_out_total", "Bytes of answers by client id."
    async for client_id, count in in_slices(sent.items(), long_work):
        out.add(name, help_text, {"client_id": client_id}, count, COUNTER)
    _write_client_pauses(out, pauses, paused_ms)
    help_text = "Requests of clients that are counted together, for there are too many ids to tell apart."
    out.add("moldau_clients_left_out_total", help_text, {}, left_out, COUNTER)


def _write_client_pauses(out: Exposition, pauses: Counter[str], paused_ms: Counter[str]) -> None:
    for client_id, count in pauses.items():
        told = {"client_id": client_id}
        out.add("moldau_client_throttled_requests_total", "Pauses of a client for quotas.", told, count, COUNTER)
        out.add("moldau_client_throttle_seconds_total", "Time of them.", told, paused_ms[client_id] / 1e3, COUNTER)


def write_pauses(out: Exposition, metering: Metering) -> None:
    count = out.lines("moldau_throttled_requests_total", "Requests after which a client had to pause.", COUNTER)
    time = out.lines("moldau_throttle_seconds_total", "Pauses that clients had to make for quotas.", COUNTER)
    for api, pauses in metering.pauses.items():
        count.append(f'moldau_throttled_requests_total{{request="{api}"}} {pauses.count}')
        time.append(f'moldau_throttle_seconds_total{{request="{api}"}} {pauses.total_ms / 1e3}')
