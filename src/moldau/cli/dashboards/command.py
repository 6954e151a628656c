"""`moldau dashboards`: Grafana's dashboards and Prometheus' alert rules, written into a folder."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from pathlib import Path

from moldau.cli.dashboards.alerts import rules_text
from moldau.cli.dashboards.brokers import BROKER, CLIENTS, TOPICS
from moldau.cli.dashboards.grafana import grafana_json
from moldau.cli.dashboards.groups import GROUPS
from moldau.cli.failures import OK, UsageError
from moldau.cli.parsing import Parser

EXAMPLES = """\
Four dashboards: brokers, topics and clients show the /metrics of brokers (moldau start --metrics PORT), groups those of
moldau monitor. Import them, or have Grafana read the folder (provisioning). Which Prometheus is asked is a variable.

The alert rules go into rule_files of prometheus.yml. What each metric means: docs/guides/monitoring.md.

examples:
  moldau dashboards /var/lib/grafana/dashboards
  promtool check rules /var/lib/grafana/dashboards/moldau-alerts.yml
"""
DASHBOARDS = (BROKER, TOPICS, GROUPS, CLIENTS)
ALERTS_FILE = "moldau-alerts.yml"


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    folder = Path(options.folder)
    found = files()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in found.items():
            write(folder / name, text)
    except OSError as wrong:
        raise UsageError(f"cannot write to {folder}: {wrong.strerror or wrong}") from None
    for name in found:
        print(folder / name)
    return OK


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau dashboards",
        description="Write dashboards for Grafana and alert rules for Prometheus into a folder.",
        epilog=EXAMPLES,
    )
    parser.add_argument("folder", metavar="DIR", help="where to; files of these names are written anew")
    return parser.parse_args(arguments)


def files() -> dict[str, str]:
    """The text of each by its name."""
    found = {f"{each.uid}.json": json.dumps(grafana_json(each), indent=2) + "\n" for each in DASHBOARDS}
    return found | {ALERTS_FILE: rules_text()}


def write(path: Path, text: str) -> None:
    """Complete or not at all: Grafana reads the folder again and again."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)
