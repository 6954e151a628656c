"""The settings of clients that follow from what was measured, each with how it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

MARGIN = 3  # a measurement has seen a few elections of a cluster that did nothing else
BACKOFF_MS, BACKOFF_MS_MAX = 100, 1_000  # Apache Kafka's defaults
JITTER = 0.2  # by which a client may wait less than it says
REQUEST_MS, DELIVERY_MS, SESSION_MS, HEARTBEAT_MS = 30_000, 120_000, 45_000, 3_000  # Apache Kafka's defaults
BEATS = 3  # a session outlasts so many heartbeats, two of which may be lost


@dataclass(frozen=True, slots=True)
class Measured:
    """The longest of each, or None where no scenario measured it."""

    election_ms: float | None = None
    """Without a leader, or until a new one took records."""
    unacknowledged_ms: float | None = None
    """No record was acknowledged, whatever the reason."""
    pause_ms: float | None = None
    """A partition was not read."""


@dataclass(frozen=True, slots=True)
class Setting:
    key: str
    value: int
    why: str


def backoff_ms(retries: int) -> float:
    """How long so many retries take at least: the wait doubles from the first to the last, less the jitter."""
    waits = (min(BACKOFF_MS << number, BACKOFF_MS_MAX) for number in range(retries))
    return sum(waits) * (1 - JITTER)


def retries_for(outage_ms: float) -> int:
    count = 1
    while backoff_ms(count) < outage_ms:
        count += 1
    return count


def producer_settings(measured: Measured) -> list[Setting]:
    known = [each for each in (measured.election_ms, measured.unacknowledged_ms) if each is not None]
    if not known:
        return []
    longest_ms = max(known)
    outage_ms = MARGIN * longest_ms
    request_ms = max(REQUEST_MS, _whole_seconds(outage_ms))
    delivery_ms = max(DELIVERY_MS, _whole_seconds(request_ms + outage_ms))
    basis = f"{MARGIN} x {longest_ms:.0f} ms, the longest time without an acknowledgement"
    return [
        Setting("retry.backoff.ms", BACKOFF_MS, "Kafka's default; each further wait is twice as long, up to"),
        Setting("retry.backoff.max.ms", BACKOFF_MS_MAX, "which is Kafka's default, too"),
        Setting(
            "retries",
            retries_for(outage_ms),
            f"the waits, less {JITTER:.0%} jitter, add up to {basis};"
            " clients that know delivery.timeout.ms leave it at its default, 2147483647",
        ),
        Setting("request.timeout.ms", request_ms, f"{basis}; not below Kafka's default, {REQUEST_MS}"),
        Setting(
            "delivery.timeout.ms",
            delivery_ms,
            f"request.timeout.ms and {basis}; not below Kafka's default, {DELIVERY_MS}",
        ),
    ]


def consumer_settings(measured: Measured) -> list[Setting]:
    if measured.pause_ms is None:
        return []
    session_ms = _whole_seconds(max(MARGIN * measured.pause_ms, BEATS * HEARTBEAT_MS))
    basis = f"{MARGIN} x {measured.pause_ms:.0f} ms, the longest time that a partition was not read in a restart"
    usual = "finds lost members later" if session_ms < SESSION_MS else "is no longer than that"
    return [
        Setting(
            "session.timeout.ms",
            session_ms,
            f"{basis}, and at least {BEATS} heartbeats; Kafka's default, {SESSION_MS}, {usual}",
        ),
        Setting(
            "heartbeat.interval.ms",
            min(HEARTBEAT_MS, session_ms // BEATS),
            f"at most a third of the session; Kafka's default is {HEARTBEAT_MS}",
        ),
    ]


def as_properties(title: str, settings: Sequence[Setting]) -> list[str]:
    """Lines to paste into a file."""
    lines = [f"# {title}"]
    for each in settings:
        lines += [f"# {each.key}: {each.why}", f"{each.key}={each.value}"]
    return lines


def _whole_seconds(duration_ms: float) -> int:
    return ceil(duration_ms / 1_000) * 1_000
