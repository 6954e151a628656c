from __future__ import annotations

from moldau.spark.pipelines.running.sessions.terminal import Filter


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


def test_of_the_search_for_jars_only_what_takes_time_or_fails_is_shown() -> None:
    judge = Filter()
    lines = [
        b"Ivy Default Cache set to: /home/u/.ivy2.5.2/cache\n",
        b"The jars for the packages stored in: /home/u/.ivy2.5.2/jars\n",
        b"org.apache.hadoop#hadoop-aws added as a dependency\n",
        b":: resolving dependencies :: org.apache.spark#spark-submit-parent-1;1.0\n",
        b"\tconfs: [default]\n",
        b"\tfound org.apache.hadoop#hadoop-aws;3.5.0 in central\n",
        b"downloading https://repository/org/apache/hadoop/hadoop-aws/3.5.0/hadoop-aws-3.5.0.jar ...\n",
        b"\torg.apache.hadoop#hadoop-aws;3.5.0 from central in [default]\n",
        b"\t|      default     |   52  |   0   |   0   |   0   ||   52  |   0   |\n",
        b"\t0 artifacts copied, 52 already retrieved (0kB/44ms)\n",
        b"\t\t:: org.apache.hadoop#hadoop-aws;9.9: not found\n",
    ]
    assert [line for line in lines if judge.shows(line)] == [lines[6], lines[-1]]
