"""Every query of every dashboard and every measure of an alert, asked of a real Prometheus."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.cli.dashboards.alerts import RULES
from tests.cli.conftest import run_tool
from tests.cli.dashboards import prometheus
from tests.cli.dashboards.prometheus import Prometheus, promtool, scraping
from tests.cli.dashboards.world import GROUP, TOPIC, world
from tests.cli.test_monitor_metrics import DASHBOARDS as OTHERS

pytestmark = [
    pytest.mark.skipif(not prometheus.is_available(), reason="needs Prometheus, or apt-get to fetch it"),
    pytest.mark.xdist_group("dashboards"),
]

DATA_S_MAX = 60.0
WINDOW = "20s"  # for Grafana's $__rate_interval, and for the longer ones of alerts: the test is younger than those
LABEL_VALUES = re.compile(r"label_values\((.*), (\w+)\)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a user gets it."""
    found = tmp_path_factory.mktemp("dashboards")
    finished = run_tool("", "dashboards", str(found))
    assert (finished.returncode, finished.stderr) == (0, "")
    assert sorted(Path(line).name for line in finished.stdout.splitlines()) == sorted(p.name for p in found.iterdir())
    return found


@pytest.fixture(scope="module")
def asked(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    work = tmp_path_factory.mktemp("prometheus")
    with world(work) as there:
        targets = {"moldau": there.broker, "lag": there.monitor}
        with scraping(work, targets, rules=folder / "moldau-alerts.yml") as found:
            yield found


def dashboards(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in dashboard["panels"] if each["type"] != "row"]


def filled(expr: str) -> str:
    """With the variables as Grafana fills them in when all values are chosen."""
    expr = re.sub(r"\$__rate_interval|(?<=\[)\d+[mh](?=\])", WINDOW, expr)
    return re.sub(r"\$\w+", ".*", expr)


def without_data(asked: Prometheus, exprs: list[str]) -> list[str]:
    """Those that find nothing until the time is up."""
    deadline_s = time.monotonic() + DATA_S_MAX
    left = exprs
    while left := [expr for expr in left if not asked.query(filled(expr))]:
        if time.monotonic() >= deadline_s:
            break
        time.sleep(0.3)
    return left


@pytest.mark.parametrize("name", ["brokers", "topics", "groups", "clients"])
def test_every_query_finds_data(folder: Path, asked: Prometheus, name: str) -> None:
    exprs = [
        target["expr"] for panel in panels(dashboards(folder)[f"moldau-{name}.json"]) for target in panel["targets"]
    ]
    assert len(exprs) > 8
    assert without_data(asked, exprs) == []


def test_every_variable_has_values(folder: Path, asked: Prometheus) -> None:
    found: dict[str, list[str]] = {}
    for dashboard in dashboards(folder).values():
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                question = LABEL_VALUES.fullmatch(variable["definition"])
                assert question is not None, variable
                assert variable["query"]["query"] == variable["definition"]
                found[f"{dashboard['uid']} {variable['name']}"] = asked.values(question[2], filled(question[1]))
    assert [name for name, values in found.items() if not values] == []
    assert TOPIC in found["moldau-topics topic"]
    assert GROUP in found["moldau-groups group"]
    assert "shop" in found["moldau-clients client_id"]


def test_numbers_are_those_of_what_was_done(folder: Path, asked: Prometheus) -> None:
    by_title = {panel["title"]: panel for panel in panels(dashboards(folder)["moldau-brokers.json"])}

    def number(title: str) -> float:
        (only,) = asked.query(filled(by_title[title]["targets"][0]["expr"]))
        return float(only["value"][1])

    assert (number("Active controllers"), number("Live brokers"), number("Offline partitions")) == (1, 1, 0)
    assert 0 < number("Fullest log directory") < 1
    assert number("Records in") > 0


def test_measures_of_alerts_have_values_and_none_is_silent_for_want_of_data(asked: Prometheus) -> None:
    measures = [each.measure for alerts in RULES.values() for each in alerts]
    assert without_data(asked, measures) == []


def test_prometheus_takes_the_rules(asked: Prometheus) -> None:
    rules = [rule for group in asked.ask("rules", {})["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in rules} == {each.name for alerts in RULES.values() for each in alerts}
    deadline_s = time.monotonic() + DATA_S_MAX
    while {rule["health"] for group in asked.ask("rules", {})["groups"] for rule in group["rules"]} != {"ok"}:
        assert time.monotonic() < deadline_s, asked.ask("rules", {})
        time.sleep(0.3)


@pytest.mark.parametrize("dashboard", OTHERS)
def test_dashboards_of_other_exporters_find_data(asked: Prometheus, dashboard: str) -> None:
    """Their panels group by these labels, and take rates of what counts."""
    exprs = [
        expr
        for name, labels in OTHERS[dashboard].items()
        for expr in (
            f"sum by ({', '.join(labels)}) ({name})",
            *([f"sum(rate({name}[{WINDOW}]))"] if re.search(r"offset|water_mark|_total$", name) else []),
        )
    ]
    assert without_data(asked, exprs) == []


def test_panels_have_room(folder: Path) -> None:
    for dashboard in dashboards(folder).values():
        taken: set[tuple[int, int]] = set()
        for panel in dashboard["panels"]:
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, panel["title"]
            taken |= cells
        assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
        assert dashboard["templating"]["list"][0]["type"] == "datasource"
        sources = {json.dumps(each["datasource"]) for panel in panels(dashboard) for each in (panel, *panel["targets"])}
        assert sources == {'{"type": "prometheus", "uid": "${datasource}"}'}


# For each alert: series of trouble, minute by minute, and the moment at which it fires.
TROUBLE = {
    "MoldauBrokerDown": (["moldau_broker_info{job='j'} 1 _x99", "up{job='j'} 1x5 0x99"], "10m"),
    "MoldauNoActiveController": (["kafka_controller_kafkacontroller_activecontrollercount{job='j'} 0x99"], "5m"),
    "MoldauOfflinePartitions": (["kafka_controller_kafkacontroller_offlinepartitionscount{job='j'} 2x99"], "5m"),
    "MoldauUnderMinIsr": (["kafka_server_replicamanager_underminisrpartitioncount{job='j'} 1x99"], "5m"),
    "MoldauUnderReplicated": (["kafka_server_replicamanager_underreplicatedpartitions{job='j'} 1x99"], "10m"),
    "MoldauLogDirectoryOffline": (["kafka_log_logmanager_logdirectoryoffline{job='j'} 1x99"], "1m"),
    "MoldauDiskFull": (
        ["moldau_log_directory_free_bytes{job='j'} 5x99", "moldau_log_directory_total_bytes{job='j'} 100x99"], "5m",
    ),
    "MoldauDiskFullSoon": (["moldau_log_directory_free_bytes{job='j'} 1000-1x400"], "300m"),
    "MoldauBrokerSaturated": (
        ["kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{job='j'} 0.01x99"], "10m",
    ),
    "MoldauFileDescriptors": (
        ["process_open_fds{job='j'} 90x99", "process_max_fds{job='j'} 100x99", "moldau_broker_info{job='j'} 1x99"],
        "10m",
    ),
    "MoldauGroupInTrouble": (["burrow_kafka_consumer_status{cluster='c',consumer_group='g'} 3x99"], "5m"),
    "MoldauLagGrows": (["kafka_consumergroup_group_sum_lag{group='g'} 0+600x99"], "60m"),
    "MoldauLagSeconds": (["kafka_consumergroup_group_max_lag_seconds{group='g'} 400x99"], "10m"),
    "MoldauMonitorBlind": (["moldau_monitor_up{cluster='c'} 0x99"], "5m"),
}  # fmt: skip
WELL = [
    "up{job='j',instance='a'} 1x400", "moldau_broker_info{job='j',instance='a'} 1x400",
    "kafka_controller_kafkacontroller_activecontrollercount{job='j'} 1x400",
    "kafka_server_replicamanager_underreplicatedpartitions{job='j'} 0x400",
    "moldau_log_directory_free_bytes{job='j'} 50x400", "moldau_log_directory_total_bytes{job='j'} 100x400",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{job='j'} 0.9x400",
    "burrow_kafka_consumer_status{cluster='c',consumer_group='g'} 2x400",
    "kafka_consumergroup_group_sum_lag{group='g'} 50x400", "kafka_consumergroup_group_max_lag_seconds{group='g'} 3x400",
    "moldau_monitor_up{cluster='c'} 1x400",
]  # fmt: skip


def rule_test(series: list[str], moment: str, *, firing: dict[str, bool]) -> dict[str, Any]:
    def split(line: str) -> dict[str, str]:
        name, _, values = line.partition(" ")
        return {"series": name, "values": values}

    asked = [{"expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)', "eval_time": moment,
              "exp_samples": [{"labels": "{}", "value": int(fires)}]} for name, fires in firing.items()]  # fmt: skip
    return {"interval": "1m", "input_series": [split(each) for each in series], "promql_expr_test": asked}


def test_each_alert_fires_in_trouble_and_none_where_all_is_well(folder: Path, tmp_path: Path) -> None:
    assert TROUBLE.keys() == {each.name for alerts in RULES.values() for each in alerts}
    tests = [rule_test(series, moment, firing={name: True}) for name, (series, moment) in TROUBLE.items()]
    tests.append(rule_test(WELL, "300m", firing=dict.fromkeys(TROUBLE, False)))
    path = tmp_path / "tests.yml"
    path.write_text(
        json.dumps({"rule_files": [str(folder / "moldau-alerts.yml")], "evaluation_interval": "1m", "tests": tests})
    )
    finished = promtool("test", "rules", str(path))
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_promtool_finds_nothing_wrong_with_the_rules(folder: Path) -> None:
    finished = promtool("check", "rules", str(folder / "moldau-alerts.yml"))
    assert (finished.returncode, "SUCCESS" in finished.stdout) == (0, True), finished.stdout + finished.stderr
