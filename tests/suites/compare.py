"""`scripts/client-suites`: every suite on Apache Kafka and on Moldau, side by side.

The exit code is 1 when there is a test that passes on Apache Kafka and not on Moldau.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from tests.suites import kafka_python
from tests.suites.outcomes import Comparison, Outcome, read_outcomes

Suite = Callable[[str, Sequence[str]], dict[str, Outcome]]
RUN_S_MAX = 1_800.0


def apache_tools(kind: str, arguments: Sequence[str]) -> dict[str, Outcome]:
    """Apache Kafka's tools as the tests in this folder use them."""
    with tempfile.TemporaryDirectory(prefix="apache-tools-suite-") as scratch:
        report = Path(scratch) / "report.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            str(Path(__file__).parent),
            f"--junitxml={report}",
            "-q",
            "-n",
            "2",
            "-m",
            "",
        ]
        subprocess.run([*command, f"--broker={kind}", *arguments], timeout=RUN_S_MAX, check=False)
        return read_outcomes(report)


SUITES: Mapping[str, Suite] = MappingProxyType({"kafka-python": kafka_python.run, "apache-tools": apache_tools})


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/client-suites", description=__doc__)
    parser.add_argument("--suite", choices=SUITES, action="append", help="only this one; may be given again")
    parser.add_argument("arguments", nargs="*", help="for pytest, after --")
    parser.add_argument("--brokers", type=int, default=1, help="of each kind, and replicas of each topic")
    wanted = parser.parse_args()
    several = f"*{wanted.brokers}" if wanted.brokers > 1 else ""
    compared = [
        Comparison(
            name,
            on_kafka=SUITES[name](f"apache{several}", wanted.arguments),
            on_us=SUITES[name](f"moldau{several}", wanted.arguments),
        )
        for name in wanted.suite or SUITES
    ]
    print("", *(each.render() for each in compared), sep="\n")
    return 1 if any(each.regressions for each in compared) else 0


if __name__ == "__main__":
    raise SystemExit(main())
