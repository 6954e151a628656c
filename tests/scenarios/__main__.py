"""`scripts/scenarios`: the scenarios of Apache Kafka's system tests on three brokers, and a table of the results."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.faults.cluster.cluster import Shape
from tests.faults.cluster.network import Network, inside
from tests.scenarios.catalogue import Scenario, scenarios
from tests.scenarios.judging import Outcome, Wrong
from tests.scenarios.trial import running_trial


def perform(
    scenario: Scenario, options: argparse.Namespace, network: Network, directory: Path
) -> tuple[Outcome, float]:
    begun_s = time.monotonic()
    shape = Shape(
        kind=options.broker, store=options.store, log_directories=scenario.log_directories, settings=scenario.settings
    )  # fmt: skip
    outcome = Outcome()
    try:
        with running_trial(shape, network, directory) as trial:
            outcome = trial.outcome
            scenario.perform(trial)
    except Wrong as wrong:
        outcome.complaints.append(str(wrong))
    except Exception:
        outcome.complaints.append(traceback.format_exc())
    return outcome, time.monotonic() - begun_s


def is_wanted(name: str, options: argparse.Namespace) -> bool:
    if options.exactly:
        return bool(name == options.exactly)
    return not options.only or any(text in name for text in options.only)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/scenarios", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="scenarios with this in their names"
    )
    parser.add_argument("--exactly", default="", metavar="NAME", help="this scenario alone")
    parser.add_argument("--list", action="store_true", help="print the scenarios' names")
    parser.add_argument("--broker", choices=("moldau", "apache"), default="moldau", help="whose (default: moldau)")
    parser.add_argument("--store", choices=("sqlite", "zookeeper"), default="sqlite", help="of Moldau's metadata")
    parser.add_argument("--directory", type=Path, help="keep logs and data here; without it, those of what fails")
    options = parser.parse_args()
    chosen = [each for each in scenarios() if is_wanted(each.name, options)]
    if options.list:
        print("\n".join(each.name for each in chosen))
        return 0
    inside("tests.scenarios", sys.argv[1:])
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # undone as after Ctrl-C
    home = options.directory or Path(tempfile.mkdtemp(prefix="moldau-scenarios-"))
    network = Network([*Shape(store=options.store).hosts, *Shape(store=options.store).store_servers])
    network.build()
    failed = 0
    for number, scenario in enumerate(chosen):
        directory = home / str(number)
        directory.mkdir(parents=True)
        outcome, seconds = perform(scenario, options, network, directory)
        figures = ", ".join(f"{name} {value}" for name, value in outcome.figures.items())
        verdict = "passed" if outcome.has_passed else "FAILED"
        print(f"| {scenario.name} | {verdict} | {figures} | {seconds:.0f} s |", flush=True)
        for complaint in outcome.complaints:
            print(f"    {complaint}", flush=True)
        if outcome.has_passed and options.directory is None:
            shutil.rmtree(directory)
        failed += not outcome.has_passed
    if failed:
        print(f"{failed} of {len(chosen)} failed; logs and data are in {home}")
    elif options.directory is None:
        shutil.rmtree(home)
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
