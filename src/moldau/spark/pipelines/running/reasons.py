"""Why something failed, in one line: Spark tells it with its plan and the stacks of two languages around it."""

from __future__ import annotations

import re

from moldau.spark.secrets import masked
from moldau.spark.tables.causes import causes_in_a_line

# Where Spark's message ends and what it knows beside it begins.
_ENDS = ("\n=== Streaming Query ===", "\nJVM stacktrace", "\nDriver stacktrace", "\n\tat ", "\nCaused by:")
# The last line of a Python stack trace: a class with its modules before it, and the message.
_PYTHON_FAILURE = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Z]\w*)(?:: (.*))?$")
_JAVA_CLASS = re.compile(r"^:?\s*(?:[a-z]\w*\.)+[A-Z]\w*:\s*")
_WRAPPING = re.compile(r"^[\[(](?:STREAM_FAILED|USER_RAISED_EXCEPTION|CONNECT_\w+)[\])]\s*")
_STREAM = re.compile(r"^Query (?:\S+ )?\[id = [^\]]*\] terminated with exception: ")
_TASK = re.compile(r"^Job aborted due to stage failure: .*?most recent failure: .*?\): (?:[a-z]\w*\.)*(?:[A-Z]\w*: )?")
_SAYS_NOTHING = re.compile(r"^Exception thrown in awaitResult|^Job aborted|^Writing job aborted")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*$")
_HINT = re.compile(r"^=+ .* =+$|^\s*$")
# Names of errors that say nothing to somebody who did not write Spark or this package.
_PLAIN = ("RuntimeError", "ValueError", "NoAnswer", "OptionError", "RecordRejected", "DataLossError")

# A failure that the next attempt meets again: wrong options and data, mistakes of the program. Others may pass.
_PERMANENT = frozenset(
    (
        "OptionError", "FormatError", "PipelineError", "RecordRejected", "EncodingFailed", "SchemaMismatch", "NullKey",
        "DataLossError", "ChangesLost", "BatchChanged", "TransactionExpired", "AnalysisException", "ParseException",
        "ArithmeticError", "AssertionError", "AttributeError", "ImportError", "IndexError", "KeyError", "LookupError",
        "ModuleNotFoundError", "NameError", "SyntaxError", "TypeError", "UnicodeDecodeError", "UnicodeEncodeError",
        "ValueError", "ZeroDivisionError",
    )
)  # fmt: skip
# Classes of SQLSTATE: no such feature, wrong cardinality, wrong data, wrong statements, raised by the query itself.
_PERMANENT_STATE = re.compile(r"\bSQLSTATE: (?:0A|21|22|42|P0)\w+")
_TOLD_OF = ("Exception", "Py4JJavaError")
_PERMANENT_JAVA = re.compile(r"\bjava\.lang\.(?:IllegalArgument|UnsupportedOperation)Exception\b")


def spark_failures() -> tuple[type[Exception], ...]:
    """What Spark raises, what the bridge to its JVM raises, and what is left when the JVM has gone."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, ConnectionError


def said_by(wrong: BaseException) -> str:
    """The reason, without the plan and the stacks."""
    text = causes_in_a_line(str(wrong).strip())
    found = _said_in_python(text) or _said_in_java(text)
    if found and _SAYS_NOTHING.match(found) and "\nCaused by: " in text:
        found = _clean(text.rpartition("\nCaused by: ")[2].splitlines()[0])
    return masked(found or type(wrong).__name__)


def is_permanent(wrong: BaseException) -> bool:
    """Whether the next attempt would fail in the same way."""
    text = str(wrong)
    failure = _python_failure(text)
    if failure is not None and failure[0] in _PERMANENT:
        return True
    # What the JVM raised and Python only tells of, as in foreachBatch: its SQLSTATE says more than the class.
    if failure is not None and not failure[0].endswith(_TOLD_OF):
        return False
    if type(wrong).__name__ in _PERMANENT:
        return True
    return bool(_PERMANENT_STATE.search(text) or _PERMANENT_JAVA.search(text))


def _said_in_python(text: str) -> str | None:
    failure = _python_failure(text)
    if failure is None:
        return None
    name, message = failure
    return _clean(message if message and _is_plain(name) else f"{name}: {message}".rstrip(": "))


def _python_failure(text: str) -> tuple[str, str] | None:
    """The class and the message of the last failure of the last stack trace, if there is one."""
    if "Traceback (most recent call last)" not in text:
        return None
    trace = text.rpartition("Traceback (most recent call last)")[2].partition(_ENDS[0])[0]
    for line in trace.splitlines()[1:]:
        failure = _PYTHON_FAILURE.match(line)
        if failure:
            return failure[1], (failure[2] or "").strip()
    return None


def _is_plain(name: str) -> bool:
    return name in _PLAIN or not name.endswith(("Error", "Exception"))


def _said_in_java(text: str) -> str | None:
    for end in _ENDS:
        text = text.partition(end)[0]
    lines = [line.strip() for line in text.splitlines() if not _HINT.match(line)]
    # One of the JVM begins with the call that failed, and only then says why.
    if lines and lines[0].startswith("An error occurred while calling") and len(lines) > 1:
        lines = lines[1:]
    return _clean(lines[0]) if lines else None


def _clean(line: str) -> str:
    for prefix in (_JAVA_CLASS, _WRAPPING, _STREAM, _WRAPPING, _TASK, _JAVA_CLASS, _WRAPPING):
        line = prefix.sub("", line)
    return _STATE.sub("", line).rstrip(";").strip()
