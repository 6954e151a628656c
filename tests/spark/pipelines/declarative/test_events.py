"""What Spark says while it updates a project."""

from __future__ import annotations

import pytest

from moldau.spark.pipelines.declarative.update import FlowEvent, Step, flow_event


@pytest.mark.parametrize(
    ("message", "event"),
    [
        ("Flow spark_catalog.default.orders is QUEUED.", FlowEvent("spark_catalog.default.orders", Step.QUEUED)),
        ("Flow send_large_orders has COMPLETED.", FlowEvent("send_large_orders", Step.COMPLETED)),
        (
            "Flow 'spark_catalog.default.v' has FAILED.\nError: [USER_RAISED_EXCEPTION] '(id < 0)' is not true! "
            "SQLSTATE: P0001",
            FlowEvent("spark_catalog.default.v", Step.FAILED, "'(id < 0)' is not true!"),
        ),
        (
            "Flow 'spark_catalog.default.o' has FAILED more than 2 times and will not be restarted.\n"
            "Error: [STREAM_FAILED] Query [id = 6424, runId = c4ac] terminated with exception: "
            "Failed when Python streaming data source perform initialOffset: Traceback (most recent call last):\n"
            '  File "source.py", line 267, in main\n'
            "moldau.spark.option_values.OptionError: there is no nothere at localhost:9092\n",
            FlowEvent("spark_catalog.default.o", Step.FAILED, "there is no nothere at localhost:9092"),
        ),
        (
            "Failed to resolve flow: 'spark_catalog.default.v'.\nError: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column "
            "with name `nope` cannot be resolved. SQLSTATE: 42703; line 1 pos 37;\n'Project ['nope]\n",
            FlowEvent(
                "spark_catalog.default.v",
                Step.FAILED,
                "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nope` cannot be resolved.",
            ),
        ),
        ("Failed to resolve flow due to upstream failure: 'spark_catalog.default.w'.\nError: it could not", None),
        (
            "Flow 'spark_catalog.default.bv' SKIPPED due to upstream failure(s).",
            FlowEvent("spark_catalog.default.bv", Step.SKIPPED),
        ),
        ("Run is COMPLETED.", None),
        ("Flow a is WALTZING.", None),
    ],
)
def test_an_event_is_a_flow_a_step_and_a_reason(message: str, event: FlowEvent | None) -> None:
    assert flow_event(message) == event
