"""What became of a suite's tests on two brokers, and what that says."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Outcome(Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Comparison:
    suite: str
    on_kafka: Mapping[str, Outcome]
    on_us: Mapping[str, Outcome]

    @property
    def regressions(self) -> list[str]:
        """What passes on Apache Kafka and does anything else, or is not there at all, on us."""
        return [
            name
            for name, outcome in self.on_kafka.items()
            if outcome is Outcome.PASSED and self.on_us.get(name) is not Outcome.PASSED
        ]

    @property
    def failures_on_both(self) -> list[str]:
        failed = Outcome.FAILED
        return [name for name, was in self.on_kafka.items() if was is failed and self.on_us.get(name) is failed]

    @property
    def only_on_us(self) -> list[str]:
        """What passes on us and fails on Apache Kafka."""
        return [
            name
            for name, outcome in self.on_kafka.items()
            if outcome is Outcome.FAILED and self.on_us.get(name) is Outcome.PASSED
        ]

    def render(self) -> str:
        lines = [f"{self.suite:<24}{'passed':>8}{'failed':>8}{'skipped':>8}"]
        for broker, outcomes in (("  Apache Kafka", self.on_kafka), ("  Moldau", self.on_us)):
            count = Counter(outcomes.values())
            lines.append(f"{broker:<24}" + "".join(f"{count[outcome]:>8}" for outcome in Outcome))
        for title, names in (
            ("passes on Apache Kafka, not here", self.regressions),
            ("fails on both", self.failures_on_both),
            ("passes here, not on Apache Kafka", self.only_on_us),
        ):
            lines += [f"  {title}: {name}" for name in names]
        return "\n".join(lines)


def read_outcomes(junit: Path) -> dict[str, Outcome]:
    """From pytest's report. A test that passes and then fails to clean up has two entries, and has failed."""
    found: dict[str, Outcome] = {}
    for case in ET.parse(junit).getroot().iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        tags = {child.tag for child in case}
        if tags & {"failure", "error"} or found.get(name) is Outcome.FAILED:
            found[name] = Outcome.FAILED
        else:
            found[name] = Outcome.SKIPPED if "skipped" in tags else Outcome.PASSED
    return found
