"""Verdicts in Burrow's JSON, to which lag in seconds is added."""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Any

from moldau.monitor.judging import Judged, partitions_of
from moldau.monitor.rules import Commit, GroupVerdict, PartitionVerdict
from moldau.monitor.windows import Windows

Json = dict[str, Any]

_FLOAT = Struct("f")
_DIGITS_MAX = 9  # tell any two numbers of 32 bits apart


def shown_share(share: float) -> float:
    """Burrow has shares in 32 bits, and shows as many digits as those have."""
    single = _FLOAT.unpack(_FLOAT.pack(share))[0]
    shown = (float(f"{single:.{digits}g}") for digits in range(1, _DIGITS_MAX))
    return next((each for each in shown if _FLOAT.unpack(_FLOAT.pack(each))[0] == single), share)


def commit_json(commit: Commit | None) -> Json | None:
    if commit is None:
        return None
    return {
        "offset": commit.offset,
        "timestamp": commit.timestamp_ms,
        "observedAt": commit.observed_ms,
        "lag": commit.lag,
    }


def partition_json(verdict: PartitionVerdict) -> Json:
    return {
        "topic": verdict.topic,
        "partition": verdict.partition,
        "owner": verdict.owner,
        "client_id": verdict.client_id,
        "status": verdict.status.name,
        "start": commit_json(verdict.start),
        "end": commit_json(verdict.end),
        "current_lag": verdict.current_lag,
        "complete": shown_share(verdict.complete),
        "lag_seconds": verdict.lag_seconds,
    }


def status_json(verdict: GroupVerdict, *, show_all: bool = False) -> Json:
    """Without partitions that are OK, unless all are to be shown."""
    shown = verdict.partitions if show_all else verdict.in_trouble
    return {
        "cluster": verdict.cluster,
        "group": verdict.group,
        "status": verdict.status.name,
        "complete": shown_share(verdict.complete),
        "partitions": [partition_json(each) for each in shown],
        "partition_count": len(verdict.partitions),
        "maxlag": None if verdict.maxlag is None else partition_json(verdict.maxlag),
        "totallag": verdict.totallag,
        "max_lag_seconds": verdict.lag_seconds,
    }


def consumer_json(judged: Judged, windows: Windows, group: str) -> Mapping[str, list[Json]]:
    """By topic, all partitions in their order, each with as many places for commits as are kept."""
    seen = judged.group(group)
    verdicts = {(each.topic, each.partition): each for each in judged.verdicts[group].partitions}
    topics: dict[str, list[Json]] = {}
    for place in partitions_of(judged.look, judged.committed.get(group, {}), seen):
        verdict, window = verdicts[place], windows.window(group, place)
        commits = [commit_json(each) for each in window.commits()] if window else []
        missing: list[Json | None] = [None] * (windows.size - len(commits)) if window else []
        topics.setdefault(place.topic, []).append(
            {
                "offsets": missing + commits,
                "owner": verdict.owner,
                "client_id": verdict.client_id,
                "current-lag": verdict.current_lag,
            }
        )
    return topics
