from __future__ import annotations

from moldau.spark.pipelines.running.terminal import Filter


def test_warnings_are_shown_and_stacks_are_not() -> None:
    judge = Filter()
    lines = [
        b"WARNING: Using incubator modules: jdk.incubator.vector\n",
        b"orders-0, offsets 0 to 9: 2 records do not fit, left out; the first at offset 3: no JSON\n",
        b'Exception in thread "stream execution thread" java.lang.StackOverflowError\n',
        b"\tat java.base/java.util.regex.Pattern$Loop.match(Pattern.java:4870)\n",
        b"Traceback (most recent call last):\n",
        b'  File "worker.py", line 1, in main\n',
        b"    raise ValueError\n",
        b"ValueError: no\n",
        b"-------------------------------------------\n",
    ]
    assert [line for line in lines if judge.shows(line)] == [lines[1], lines[-1]]


def test_a_count_is_shown_when_it_has_changed() -> None:
    lines = [
        b"%s: %d records did not fit so far and were written to dead letters (orders-1: %d)\n" % (query, count, count)
        for query, count in ((b"orders", 1), (b"clicks", 1), (b"orders", 1), (b"orders", 2), (b"orders", 2))
    ]
    judge = Filter()
    assert [judge.shows(line) for line in lines] == [True, True, False, True, False]
