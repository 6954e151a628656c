"""Messages as Spark 4.3 gives them, shortened where they go on."""

from __future__ import annotations

import pytest

from moldau.spark.pipelines.running.reasons import is_permanent, said_by

IN_A_WORKER = """\
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/x/moldau/spark/writing/sink.py", line 64, in write
    return TaskWritten(write_exactly_once(iterator, self.options, sink_task).records, sink_task.name)
                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
moldau.spark.clients.librdkafka.NoAnswer: batch 0 of query 79: Unknown topic or partition
 SQLSTATE: 38000
=== Streaming Query ===
Identifier: orders.copies [id = 79, runId = b5]
"""
ANALYSIS = """\
[TABLE_OR_VIEW_NOT_FOUND] The table or view `none` cannot be found. Verify the spelling. SQLSTATE: 42P01; line 1 pos 14;
'Project [*]
+- 'UnresolvedRelation [none], [], false
"""
RAISED = """\
[STREAM_FAILED] Query [id = 7, runId = 8] terminated with exception: [USER_RAISED_EXCEPTION] n is broken SQLSTATE: P1 \
SQLSTATE: XXKST
=== Streaming Query ===
"""
BRIDGE = """\
An error occurred while calling o33.start.
: java.lang.IllegalArgumentException: requirement failed: moldau_sql does not support Update mode.
\tat scala.Predef$.require(Predef.scala:337)
"""
TASK = """\
Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 in stage 3.0 \
(TID 3) (host executor driver): org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.divideByZeroError(QueryExecutionErrors.scala:190)
"""
AWAITED = """\
An error occurred while calling o7134.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:\x20
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkException: Exception thrown in awaitResult:\x20
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012
== SQL (line 1, position 1) ==
"""
LOST = """\
Failed when Python streaming data source perform partitions: Traceback (most recent call last):
  File "/x/moldau/spark/reading/data_loss.py", line 77, in raise_or_warn
moldau.spark.reading.data_loss.DataLossError: Data was lost, up to 1 record in all: topic 'orders' partition 0: \
offsets 3 to 3
"""
NO_STORE = """\
[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: Traceback (most recent call last):
  File "/x/moldau/spark/tables/delta/target.py", line 91, in _loaded_or_created
OSError: Generic S3 error
          \x1b[31m↳\x1b[0m Error performing GET http://127.0.0.1:1/lake in 1.4ms - HTTP error
           \x1b[31m↳\x1b[0m Connection refused (os error 111)
 SQLSTATE: 38000
"""
PLAIN_PYTHON = """\
Traceback (most recent call last):
  File "/x/pipeline.py", line 3, in view
KeyError: 'name'
"""


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (IN_A_WORKER, "batch 0 of query 79: Unknown topic or partition"),
        (ANALYSIS, "[TABLE_OR_VIEW_NOT_FOUND] The table or view `none` cannot be found. Verify the spelling."),
        (RAISED, "n is broken"),
        (BRIDGE, "requirement failed: moldau_sql does not support Update mode."),
        (AWAITED, "[DIVIDE_BY_ZERO] Division by zero."),
        (TASK, "[DIVIDE_BY_ZERO] Division by zero."),
        (PLAIN_PYTHON, "KeyError: 'name'"),
        (LOST, "Data was lost, up to 1 record in all: topic 'orders' partition 0: offsets 3 to 3"),
        (
            NO_STORE,
            "OSError: Generic S3 error: Error performing GET http://127.0.0.1:1/lake in 1.4ms - HTTP error: "
            "Connection refused (os error 111)",
        ),
        ("", "ValueError"),
    ],
)
def test_the_reason_is_one_line(message: str, reason: str) -> None:
    assert said_by(ValueError(message)) == reason


IN_FOREACH_BATCH = """\
[STREAM_FAILED] Query x [id = 1, runId = 2] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] An error \
occurred in the user provided function in foreach batch sink. Reason: Traceback (most recent call last):
  File "/x/pyspark/errors/exceptions/captured.py", line 1, in deco
pyspark.errors.exceptions.captured.ArithmeticException: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012
== SQL (line 1, position 1) ==
"""
NO_TOPIC = IN_A_WORKER.replace("clients.librdkafka.NoAnswer", "option_values.MissingTopic")
REJECTED = IN_A_WORKER.replace("clients.librdkafka.NoAnswer", "dead_letters.rejections.RecordRejected")


@pytest.mark.parametrize(
    "message",
    [ANALYSIS, RAISED.replace("P1", "P0001"), BRIDGE, AWAITED, PLAIN_PYTHON, REJECTED, IN_FOREACH_BATCH],
)
def test_what_comes_again_is_permanent(message: str) -> None:
    assert is_permanent(RuntimeError(message))


@pytest.mark.parametrize("message", [IN_A_WORKER, NO_TOPIC, "Job aborted: executor lost SQLSTATE: XXKST", ""])
def test_what_may_pass_is_not(message: str) -> None:
    assert not is_permanent(RuntimeError(message))
