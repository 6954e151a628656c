"""What is told: a template in which `$group` and others stand for what is known, or JSON with all of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from string import Template

from moldau.core.visible import in_one_line
from moldau.monitor.burrow_json import partition_json, status_json
from moldau.monitor.notifying.deciding import Event, Incident
from moldau.monitor.rules import GroupVerdict

FIELDS = (
    "event", "id", "start", "cluster", "group", "status", "complete", "totallag", "max_lag_seconds", "partition_count",
    "partitions", "result",
)  # fmt: skip


class BadTemplate(ValueError):
    pass


def checked(template: str, extras: Mapping[str, str]) -> Template:
    """Raises BadTemplate for a name that stands for nothing."""
    found = Template(template)
    if not found.is_valid():
        raise BadTemplate("a $ that begins no name is written $$")
    unknown = sorted({*found.get_identifiers()} - {*FIELDS, *extras})
    if unknown:
        raise BadTemplate(f"unknown ${unknown[0]}; there are {', '.join(f'${each}' for each in (*FIELDS, *extras))}")
    return found


def fields(event: Event, incident: Incident, verdict: GroupVerdict) -> dict[str, str]:
    seconds = verdict.lag_seconds
    return {
        "event": event.value,
        "id": incident.id,
        "start": datetime.fromtimestamp(incident.since_ms / 1_000, UTC).isoformat(timespec="seconds"),
        "cluster": verdict.cluster,
        "group": verdict.group,
        "status": verdict.status.name,
        "complete": f"{verdict.complete:g}",
        "totallag": str(verdict.totallag),
        "max_lag_seconds": "null" if seconds is None else f"{seconds:g}",
        "partition_count": str(len(verdict.partitions)),
        "partitions": json.dumps([partition_json(each) for each in verdict.in_trouble]),
        "result": json.dumps(status_json(verdict)),
    }


def as_json(known: Mapping[str, str]) -> str:
    """What is sent without a template."""
    plain = {name: known[name] for name in ("event", "id", "start")}
    return json.dumps({**plain, "result": json.loads(known["result"])})


def as_text(known: Mapping[str, str]) -> str:
    """For people, and their terminals: whoever may join a group says what is in its name."""
    lines = [
        f"group {in_one_line(known['group'])} of cluster {known['cluster']} is {known['status']}",
        "",
        f"since      {known['start']}",
        f"lag        {known['totallag']} records in {known['partition_count']} partitions",
    ]
    if known["max_lag_seconds"] != "null":
        lines.append(f"waiting    {float(known['max_lag_seconds']):.0f} s, the oldest unread record")
    for each in json.loads(known["partitions"]):
        lines.append(f"{each['status']:<10} {each['topic']}-{each['partition']}, lag {each['current_lag']}")
    return "\n".join([*lines, "", f"incident   {known['id']}", ""])
