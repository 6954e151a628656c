"""What Spark says while it updates a project."""

from __future__ import annotations

import pytest

from moldau.spark.pipelines.declarative.update import Failure, FlowEvent, Step, flow_event, may_pass


@pytest.mark.parametrize(
    ("message", "event"),
    [
        ("Flow spark_catalog.default.orders is QUEUED.", FlowEvent("spark_catalog.default.orders", Step.QUEUED)),
        ("Flow send_large_orders has COMPLETED.", FlowEvent("send_large_orders", Step.COMPLETED)),
        (
            "Flow 'spark_catalog.default.v' has FAILED.\nError: [USER_RAISED_EXCEPTION] '(id < 0)' is not true! "
            "SQLSTATE: P0001",
            FlowEvent("spark_catalog.default.v", Step.FAILED, Failure("'(id < 0)' is not true!", is_permanent=True)),
        ),
        (
            "Flow 'spark_catalog.default.o' has FAILED more than 2 times and will not be restarted.\n"
            "Error: [STREAM_FAILED] Query [id = 6424, runId = c4ac] terminated with exception: "
            "Failed when Python streaming data source perform initialOffset: Traceback (most recent call last):\n"
            '  File "source.py", line 267, in main\n'
            "moldau.spark.option_values.OptionError: startingOffsets = 'soon': expected earliest, latest or JSON\n",
            FlowEvent(
                "spark_catalog.default.o",
                Step.FAILED,
                Failure("startingOffsets = 'soon': expected earliest, latest or JSON", is_permanent=True),
            ),
        ),
        (
            "Flow 'spark_catalog.default.o' has FAILED.\nError: [PYTHON_EXCEPTION] Traceback (most recent call last):\n"
            "moldau.spark.clients.librdkafka.NoAnswer: no broker of localhost:9092 answers\n",
            FlowEvent("spark_catalog.default.o", Step.FAILED, Failure("no broker of localhost:9092 answers")),
        ),
        (
            "Flow 'spark_catalog.default.o' has FAILED.",
            FlowEvent("spark_catalog.default.o", Step.FAILED, Failure("failed")),
        ),
        (
            "Failed to resolve flow: 'spark_catalog.default.v'.\nError: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column "
            "with name `nope` cannot be resolved. SQLSTATE: 42703; line 1 pos 37;\n'Project ['nope]\n",
            FlowEvent(
                "spark_catalog.default.v",
                Step.FAILED,
                Failure(
                    "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nope` cannot be resolved.",
                    is_permanent=True,
                ),
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


def test_what_definitions_look_at_may_come_back() -> None:
    from pyspark.errors import AnalysisException
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    trace = "Failed to create a Python data source: Traceback (most recent call last):\n"
    assert may_pass(ConnectionRefusedError("connection refused"))
    assert may_pass(SparkConnectGrpcException("failed to connect to all addresses"))
    assert may_pass(AnalysisException(f"{trace}moldau.spark.clients.librdkafka.NoAnswer: nobody answers\n"))
    assert not may_pass(AnalysisException(f"{trace}moldau.spark.option_values.OptionError: topic is missing\n"))
    assert not may_pass(AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] there is no table"))
    assert not may_pass(NameError("name 'dp' is not defined"))
