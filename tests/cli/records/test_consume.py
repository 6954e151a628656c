"""`moldau consume` against a running broker."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from moldau.cli.failures import UsageError
from moldau.cli.main import main
from moldau.cli.records.consume import with_offsets
from moldau.client.cluster import Cluster
from moldau.embedded import EmbeddedBroker
from tests.cli.conftest import Tool, command, environment, run_tool

Done = Callable[..., str]
WAIT_S_MAX = 30.0


@pytest.fixture
def numbers(done: Done, topic: str) -> str:
    """A topic with the numbers 0 to 9 in partition 0, one every second from second 1000."""
    lines = [f'{{"key": "k{n}", "value": "{n}", "timestamp": {1_000_000 + n * 1_000}}}' for n in range(10)]
    done("produce", topic, "-p", "0", "-i", "json", stdin="\n".join(lines))
    return topic


@pytest.mark.parametrize(
    ("offset", "first"),
    [("start", 0), ("7", 7), ("-3", 7), ("-30", 0), ("+2", 2), ("@1004000", 4), ("@1970-01-01T00:16:48.500", 9)],
)
def test_where_to_begin(done: Done, numbers: str, offset: str, first: int) -> None:
    shown = done("consume", numbers, "-p", "0", "-e", "--offset", offset)
    assert shown.split() == [str(number) for number in range(first, 10)]


def test_nothing_from_the_end_on(done: Done, numbers: str) -> None:
    assert done("consume", numbers, "-e") == ""
    assert done("consume", numbers, "-e", "--offset", "@2000-01-01") == ""


def test_no_more_than_wanted(done: Done, numbers: str) -> None:
    assert done("consume", numbers, "-B", "-n", "3").split() == ["0", "1", "2"]


def test_chosen_fields_and_formats(done: Done, numbers: str) -> None:
    fields = ("--show", "partition,offset,timestamp,key,value")
    assert done("consume", numbers, "--from-beginning", "-n", "1", *fields) == "0\t0\t1000000\tk0\t0\n"
    assert done("consume", numbers, "--from-beginning", "-n", "2", "-f", r"%t/%p@%o %k=%v (%V)\x21\n") == (
        f"{numbers}/0@0 k0=0 (1)!\n{numbers}/0@1 k1=1 (1)!\n"
    )


@pytest.mark.parametrize(
    ("options", "exit_code", "complaint"),
    [
        (("--offset", "99"), 1, "offset 99 is outside 0..10"),
        (("-p", "5"), 1, "has no partition 5; it has 2"),
        (("--offset", "soon"), 2, "'soon' is no offset"),
        (("-f", "%q"), 2, "unknown field '%q' in the format"),
        (("--show", "colour"), 2, "unknown field 'colour'"),
    ],
)
def test_what_cannot_be_read(
    tool: Tool, numbers: str, options: tuple[str, ...], exit_code: int, complaint: str
) -> None:
    finished = tool("consume", numbers, *options)
    assert finished.returncode == exit_code
    assert complaint in finished.stderr
    assert finished.stderr.count("\n") == 1


@pytest.mark.parametrize("offset", ["start", "@-1h:end", "-5"])
def test_an_offset_behind_the_option_of_the_output_says_where_it_belongs(offset: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"said by --offset {offset}")):
        with_offsets(["orders", "-o", offset])


def test_a_missing_topic_says_how_to_make_it(tool: Tool, moldau_topic: str) -> None:
    finished = tool("consume", moldau_topic)
    assert finished.returncode == 1
    assert finished.stderr == (
        f"moldau consume: topic {moldau_topic!r} does not exist; create it with: moldau topics create {moldau_topic}\n"
    )


@pytest.fixture
def _children_heed_ctrl_c() -> Iterator[None]:
    """A shell that runs the tests in the background has SIGINT ignored, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_children_heed_ctrl_c")
def test_new_records_arrive_until_ctrl_c(bootstrap: str, done: Done, numbers: str) -> None:
    arguments = command("consume", numbers, "--offset", "-1")
    with subprocess.Popen(
        arguments, env=environment(bootstrap), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"9\n"
        done("produce", numbers, "-p", "1", stdin="new\n")
        assert reader.stdout.readline() == b"new\n"
        reader.send_signal(signal.SIGINT)
        rest, complaints = reader.communicate(timeout=WAIT_S_MAX)
    assert (reader.returncode, rest, complaints) == (0, b"", b"")


def test_a_reader_that_has_enough_is_no_failure(bootstrap: str, numbers: str) -> None:
    arguments = command("consume", numbers, "--from-beginning")
    with subprocess.Popen(
        arguments, env=environment(bootstrap), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as reader:
        assert reader.stdout is not None
        assert reader.stderr is not None
        reader.stdout.close()
        complaints = reader.stderr.read()
        assert (reader.wait(WAIT_S_MAX), complaints) == (0, b"")


def test_output_that_cannot_be_written_is_one_line(bootstrap: str, numbers: str) -> None:
    with open("/dev/full", "wb") as full:
        finished = subprocess.run(
            command("consume", numbers, "--from-beginning", "-e"),
            env=environment(bootstrap),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=WAIT_S_MAX,
            check=False,
        )
    assert finished.returncode == 1
    assert finished.stderr == b"moldau consume: input or output: No space left on device\n"


@pytest.mark.parametrize(
    ("offset", "numbers_read"),
    [
        ("2:4", [2, 3]),
        (":3", [0, 1, 2]),
        ("-2:end", [8, 9]),
        ("+8:100", [8, 9]),
        ("@1002000:@1004000", [2, 3]),
        ("@1002000:2s", [2, 3]),
        ("@1970-01-01T00:16:48:end", [8, 9]),
        ("-2:", None),
    ],
)
def test_ranges(done: Done, numbers: str, offset: str, numbers_read: list[int] | None) -> None:
    more = ("-n", "2") if numbers_read is None else ()
    assert done("consume", numbers, "-p", "0", "--offset", offset, *more).split() == [
        str(number) for number in numbers_read or [8, 9]
    ]


def test_only_what_is_looked_for(done: Done, topic: str) -> None:
    lines = [
        {"key": "a", "value": "Error 1", "headers": [["from", "x"]]},
        {"key": "error", "value": "fine"},
        {"key": None, "value": {"base64": "/2Vycm9y"}},
        {"key": "b", "value": None},
    ]
    done("produce", topic, "-p", "0", "-i", "json", stdin="\n".join(map(json.dumps, lines)))

    def found(*options: str) -> list[str]:
        return done("consume", topic, "--from-beginning", "-e", "-f", "%o ", *options).split()

    assert found("--grep", "(?i)error") == ["0", "1", "2"]
    assert found("--grep", "error", "-n", "1") == ["1"]
    assert found("--grep-key", "error") == ["1"]
    assert found("--grep-value", "error") == ["2"]
    assert found("--grep-header", "^from=x$") == ["0"]


def test_several_topics_and_a_pattern(done: Done, topic: str, moldau_topic: str) -> None:
    done("topics", "create", f"{moldau_topic}-2")
    done("produce", topic, stdin="a\n")
    done("produce", f"{moldau_topic}-2", stdin="b\n")
    both = ("--from-beginning", "-e", "-f", "%t=%v\n")
    expected = [f"{moldau_topic}-2=b", f"{topic}=a"]
    assert sorted(done("consume", *both, topic, f"{moldau_topic}-2").split()) == sorted(expected)
    assert sorted(done("consume", *both, "-r", f"{re.escape(moldau_topic)}(-2)?").split()) == sorted(expected)
    assert done("consume", *both, "-r", re.escape(moldau_topic)).split() == [f"{topic}=a"]


def test_forms_in_braces(done: Done, topic: str) -> None:
    line = {"key": "k", "value": "v", "headers": [["a", "1"], ["b", None]], "timestamp": 1_700_000_000_123}
    done("produce", topic, "-p", "0", "-i", "json", stdin=json.dumps(line))
    text = r"%v{hex} %k{base64} %T{%F %T} %d{iso} %H %h{%k->%v;} %e %o{hex}%{%}\n"
    assert done("consume", topic, "--from-beginning", "-e", "-f", text) == (
        "76 aw== 2023-11-14 22:13:20 2023-11-14T22:13:20.123+00:00 2 a->1;b->null; 0 0{}\n"
    )


def test_isolation_levels(bootstrap: str, done: Done, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"of-{topic}"})
    producer.init_transactions(WAIT_S_MAX)
    for value, end in (("kept", producer.commit_transaction), ("dropped", producer.abort_transaction), ("open", None)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(WAIT_S_MAX)
        if end is not None:
            end(WAIT_S_MAX)
    everything = ("--from-beginning", "-e")
    assert done("consume", topic, *everything).split() == ["kept", "dropped", "open"]
    assert done("consume", topic, *everything, "--isolation-level", "read_uncommitted").split() == [
        "kept", "dropped", "open",
    ]  # fmt: skip
    assert done("consume", topic, *everything, "--isolation-level", "read_committed").split() == ["kept"]
    group = ("-g", f"group-{topic}", "--isolation-level", "read_uncommitted")
    assert done("consume", topic, *everything, *group).split() == ["kept", "dropped", "open"]
    producer.abort_transaction(WAIT_S_MAX)


def test_a_group_goes_on_where_it_stopped(done: Done, numbers: str) -> None:
    group = ("-g", f"group-{numbers}", "--from-beginning")
    assert done("consume", numbers, *group, "-n", "4").split() == ["0", "1", "2", "3"]
    assert done("consume", numbers, *group, "-e").split() == ["4", "5", "6", "7", "8", "9"]
    assert done("consume", numbers, *group, "-e") == ""


def test_a_member_that_is_terminated_commits_and_leaves(bootstrap: str, done: Done, numbers: str) -> None:
    group = f"group-{numbers}"
    with subprocess.Popen(
        command("consume", numbers, "-g", group, "--from-beginning"),
        env=environment(bootstrap),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as reader:
        assert reader.stdout is not None
        assert sorted(int(reader.stdout.readline()) for _ in range(10)) == list(range(10))
        done("produce", numbers, "-p", "0", stdin="10\n")  # whoever asks for it has noted what it printed before
        assert int(reader.stdout.readline()) == 10
        reader.terminate()
        _, complaints = reader.communicate(timeout=WAIT_S_MAX)
    assert (reader.returncode, complaints) == (128 + signal.SIGTERM, b"")
    (listed,) = [each for each in json.loads(done("groups", "list", "-o", "json")) if each["group"] == group]
    assert listed["state"] == "Empty"
    assert listed["lag"] in (0, 1)


def test_reading_without_a_group_creates_nothing(moldau_run: Callable[..., EmbeddedBroker], tmp_path: Path) -> None:
    broker = moldau_run(data_dir=tmp_path)
    assert run_tool(broker.bootstrap_servers, "produce", "a", stdin="x\n").returncode == 0
    assert run_tool(broker.bootstrap_servers, "consume", "a", "--from-beginning", "-n", "1").stdout == "x\n"
    with Cluster(broker.bootstrap_servers, client_id="test", timeout_s=WAIT_S_MAX) as cluster:
        assert [topic.name for topic in cluster.metadata().topics] == ["a"]


def test_new_partitions_are_read_and_a_topic_that_goes_is_told(bootstrap: str, done: Done, moldau_topic: str) -> None:
    done("topics", "create", moldau_topic)
    arguments = command("consume", moldau_topic, "--from-beginning")
    with subprocess.Popen(
        arguments, env=environment(bootstrap), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as reader:
        assert reader.stdout is not None
        done("produce", moldau_topic, stdin="first\n")
        assert reader.stdout.readline() == b"first\n"
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_partitions([NewPartitions(moldau_topic, 2)])[moldau_topic].result()
        done("produce", moldau_topic, "-p", "1", stdin="second\n")
        assert reader.stdout.readline() == b"second\n"
        admin.delete_topics([moldau_topic])[moldau_topic].result()
        _, complaints = reader.communicate(timeout=WAIT_S_MAX)
    assert reader.returncode == 1
    assert complaints.decode().splitlines() == [
        f"moldau consume: topic {moldau_topic!r} was deleted",
        f"moldau consume: nothing is left to read: topic {moldau_topic!r} does not exist;"
        f" create it with: moldau topics create {moldau_topic}",
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "which topic? Name one or more, or give a --regex"),
        (("-r", "("), "--regex: '(' is no regular expression"),
        (("a", "-r", "b"), "unexpected argument 'a': --regex says which topics to read"),
        (("a", "--grep", "("), "--grep: '(' is no regular expression"),
        (("a", "-g", ""), "the name of a group can't be empty"),
        (("a", "-g", "g", "--offset", "3"), "--offset 3: a group begins at its committed offsets"),
        (("a", "-g", "g", "-p", "0"), "--partition: the group says who reads which partition"),
        (("a", "--offset", "1:2", "--follow"), "--follow: 1:2 has an end"),
        (("a", "-f", "%v{base32}"), "unknown form {base32} of a content"),
        (("a", "-f", "%v{hex"), "ends inside of braces"),
    ],
)
def test_wrong_options(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str) -> None:
    assert main(["consume", *arguments]) == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert told.count("\n") == 1
