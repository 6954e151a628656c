"""Dashboards as values, and the JSON that Grafana imports of them.

The data source is a variable, as all that depends on an installation: a file works wherever it is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SCHEMA_VERSION = 39  # of Grafana 10 and newer, which bring it up to date by themselves
COLUMNS = 24  # Grafana's grid
STAT_WIDTH, GRAPH_WIDTH, TABLE_WIDTH = 4, 12, 24
STAT_HEIGHT, GRAPH_HEIGHT, ROW_HEIGHT = 4, 8, 1
DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
REFRESH = "30s"
ROOM = "@"  # in an expression: the matchers of the dashboard's variables


@dataclass(frozen=True, slots=True)
class Query:
    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """`kind` is stat, timeseries or table; the first of them turns red from `bad_from` on, or below `bad_below`."""

    title: str
    queries: Sequence[Query]
    unit: str = "short"
    kind: str = "timeseries"
    about: str = ""
    bad_from: float | None = None
    bad_below: float | None = None
    names: Mapping[int, str] | None = None
    """Words for numbers that are states."""


@dataclass(frozen=True, slots=True)
class Variable:
    """What a reader may choose: the values of a label of a metric."""

    name: str
    metric: str
    label: str


@dataclass(frozen=True, slots=True)
class Dashboard:
    uid: str
    title: str
    about: str
    matchers: str
    variables: Sequence[Variable]
    rows: Mapping[str, Sequence[Panel]]

    def expressions(self) -> list[str]:
        """Of all panels, as they stand in the file."""
        return [self.written(query.expr) for row in self.rows.values() for panel in row for query in panel.queries]

    def written(self, expr: str) -> str:
        return expr.replace(ROOM, self.matchers)


def graph(title: str, *queries: tuple[str, str], unit: str = "short", about: str = "") -> Panel:
    return Panel(title, [Query(*each) for each in queries], unit=unit, about=about)


def stat(
    title: str, expr: str, *, unit: str = "short", bad_from: float | None = None, bad_below: float | None = None
) -> Panel:
    return Panel(title, [Query(expr)], unit=unit, kind="stat", bad_from=bad_from, bad_below=bad_below)


def grafana_json(dashboard: Dashboard) -> dict[str, Any]:
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.about,
        "tags": ["moldau", "kafka"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "refresh": REFRESH,
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "graphTooltip": 1,
        "templating": {"list": [_data_source(), *map(_variable, dashboard.variables)]},
        "annotations": {"list": []},
        "links": [
            {"type": "dashboards", "title": "Moldau", "tags": ["moldau"], "asDropdown": True, "includeVars": True}
        ],
        "panels": _laid_out(dashboard),
    }


def _data_source() -> dict[str, Any]:
    return {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus", "refresh": 1}


def question_of(variable: Variable) -> str:
    """As Grafana asks Prometheus for the values of a variable."""
    return f"label_values({variable.metric}, {variable.label})"


def _variable(variable: Variable) -> dict[str, Any]:
    question = question_of(variable)
    return {
        "type": "query",
        "name": variable.name,
        "label": variable.name.replace("_", " "),
        "datasource": DATA_SOURCE,
        "definition": question,
        "query": {"query": question, "refId": variable.name},
        "refresh": 2,  # whenever the time range changes
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def _laid_out(dashboard: Dashboard) -> list[dict[str, Any]]:
    """Row by row, each panel beside the one before it while there is room."""
    found: list[dict[str, Any]] = []
    top = 0
    for title, panels in dashboard.rows.items():
        place = {"h": ROW_HEIGHT, "w": COLUMNS, "x": 0, "y": top}
        found.append(
            {"id": len(found) + 1, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}
        )
        top, left, high = top + ROW_HEIGHT, 0, 0
        for panel in panels:
            width, height = _size(panel)
            if left + width > COLUMNS:
                top, left, high = top + high, 0, 0
            place = {"h": height, "w": width, "x": left, "y": top}
            found.append({"id": len(found) + 1, "gridPos": place, **_panel(dashboard, panel)})
            left, high = left + width, max(high, height)
        top += high
    return found


def _size(panel: Panel) -> tuple[int, int]:
    if panel.kind == "stat":
        return STAT_WIDTH, STAT_HEIGHT
    return (TABLE_WIDTH if panel.kind == "table" else GRAPH_WIDTH), GRAPH_HEIGHT


def _panel(dashboard: Dashboard, panel: Panel) -> dict[str, Any]:
    is_table = panel.kind == "table"
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": DATA_SOURCE,
        "fieldConfig": {"defaults": _field(panel), "overrides": []},
        "options": _OPTIONS[panel.kind],
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": DATA_SOURCE,
                "expr": dashboard.written(query.expr),
                "legendFormat": query.legend or "__auto",
                "instant": is_table,
                "range": not is_table,
                "format": "table" if is_table else "time_series",
            }
            for number, query in enumerate(panel.queries)
        ],
        **({"transformations": [{"id": "merge", "options": {}}]} if is_table and len(panel.queries) > 1 else {}),
    }


_OPTIONS: Mapping[str, dict[str, Any]] = {
    "stat": {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "background"},
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "table": {"showHeader": True},
}


def _field(panel: Panel) -> dict[str, Any]:
    found: dict[str, Any] = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": _steps(panel)}}
    if panel.kind == "timeseries":
        found |= {"min": 0, "custom": {"fillOpacity": 8, "lineWidth": 1, "showPoints": "never", "spanNulls": True}}
    if panel.names:
        words = {str(number): {"text": word, "index": number} for number, word in panel.names.items()}
        found["mappings"] = [{"type": "value", "options": words}]
    return found


def _steps(panel: Panel) -> list[dict[str, Any]]:
    if panel.bad_from is not None:
        return [{"color": "green", "value": None}, {"color": "red", "value": panel.bad_from}]
    if panel.bad_below is not None:
        return [{"color": "red", "value": None}, {"color": "green", "value": panel.bad_below}]
    return [{"color": "blue", "value": None}]
