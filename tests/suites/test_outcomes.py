from __future__ import annotations

from pathlib import Path

from tests.suites.outcomes import Comparison, Outcome, read_outcomes

PASSED, FAILED, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED

REPORT = """\
<testsuites><testsuite>
<testcase classname="a" name="passes"/>
<testcase classname="a" name="fails"><failure/></testcase>
<testcase classname="a" name="breaks"><error/></testcase>
<testcase classname="a" name="skips"><skipped/></testcase>
<testcase classname="a" name="leaks"/>
<testcase classname="a" name="leaks"><error/></testcase>
</testsuite></testsuites>
"""


def test_outcomes_are_read_from_a_report(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    assert read_outcomes(tmp_path / "report.xml") == {
        "a::passes": PASSED, "a::fails": FAILED, "a::breaks": FAILED, "a::skips": SKIPPED, "a::leaks": FAILED
    }  # fmt: skip


def test_what_kafka_passes_must_pass_here() -> None:
    on_kafka = {"same": PASSED, "worse": PASSED, "skipped": PASSED, "gone": PASSED, "both": FAILED, "better": FAILED}
    on_us = {"same": PASSED, "worse": FAILED, "skipped": SKIPPED, "both": FAILED, "better": PASSED}
    compared = Comparison("suite", on_kafka, on_us)
    assert compared.regressions == ["worse", "skipped", "gone"]
    assert compared.failures_on_both == ["both"]
    assert compared.only_on_us == ["better"]
    assert "passes on Apache Kafka, not here: worse" in compared.render()
