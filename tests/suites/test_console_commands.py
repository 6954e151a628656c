"""console-producer and console-consumer beside Apache Kafka's: one topic, the same bytes on standard output."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.cli.conftest import run_tool
from tests.suites.tools import Tools

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
SERIALIZATION = "org.apache.kafka.common.serialization."
FORMATTERS = "org.apache.kafka.tools.consumer."
COLUMNS = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
# Keys, values and headers in every form that console-producer can send; eight and four bytes are numbers, too.
LINES = (
    "a:1,b:2\tkey\tvalue\n"
    "NIL\tNIL\tNIL\n"
    "a:NIL\tk\t12345678\n"
    "a:,b:x:y\t\t\n"
    "a:1,,\tk\twxyz\n"
    "ž:ů\tkůň\t\\žluť ✓\n"
    "x:1\tk\t123e4567-e89b-12d3-a456-426614174000\n"
)
READER = ("parse.key=true", "parse.headers=true", "null.marker=NIL", "ignore.error=true")
# Of one partition, for which Apache Kafka's tool joins no group either, and so does not wait for one.
EVERYTHING = ("--partition", "0", "--offset", "earliest", "--max-messages", str(LINES.count("\n")))
NewTopic = Callable[..., str]


def properties(option: str, *pairs: str) -> list[str]:
    return [word for pair in pairs for word in (option, pair)]


def ours(tools: Tools, *words: str, stdin: str = "") -> tuple[int, str]:
    done = run_tool(tools.bootstrap, *words, stdin=stdin)
    return done.returncode, done.stdout


def apaches(tools: Tools, tool: str, *words: str, stdin: str = "") -> tuple[int, str]:
    asked = {"class": tool, "args": ["--bootstrap-server", tools.bootstrap, *words], "stdin": stdin}
    done = tools.host.ask(asked)
    return int(done["exit"]), str(done["out"])


@pytest.fixture(scope="module")
def sent(tools: Tools, new_module_topic: str) -> str:
    words = ("--topic", new_module_topic, *properties("--reader-property", *READER))
    assert apaches(tools, PRODUCER, *words, stdin=LINES) == (0, "")
    return new_module_topic


@pytest.fixture(scope="module")
def new_module_topic(bootstrap: str) -> str:
    from tests.faults.clients import create_topic

    name = "topic-of-console-commands"
    create_topic(bootstrap, name, partitions=1)
    return name


@pytest.mark.parametrize(
    "words",
    [
        (),
        properties("--formatter-property", *(f"print.{name}=true" for name in COLUMNS)),
        properties(
            "--formatter-property", "print.key=true", "print.headers=true", "key.separator=|", "line.separator=;",
            "headers.separator=+", "null.literal=~",
        ),
        properties("--formatter-property", "print.key=true", "print.value=false"),
        ("--formatter", f"{FORMATTERS}NoOpMessageFormatter"),
        ("--formatter", f"{FORMATTERS}LoggingMessageFormatter"),
        *(
            ("--skip-message-on-error", "--value-deserializer", f"{SERIALIZATION}{kind}Deserializer")
            for kind in ("Long", "Integer", "Short", "Double", "Float", "UUID", "Void", "ByteBuffer", "Bytes", "String")
        ),
    ],
    ids=lambda words: " ".join(words[-2:]) or "default",
)  # fmt: skip
def test_both_print_the_same(tools: Tools, sent: str, words: tuple[str, ...]) -> None:
    asked = ("--topic", sent, *EVERYTHING, *words)
    assert ours(tools, "console-consumer", *asked) == apaches(tools, CONSUMER, *asked)


def test_both_begin_where_they_are_told(tools: Tools, sent: str) -> None:
    for start in (("--partition", "0", "--offset", "3"), ("--from-beginning",)):
        asked = ("--topic", sent, *start, "--max-messages", "2")
        assert ours(tools, "console-consumer", *asked) == apaches(tools, CONSUMER, *asked)


def test_both_send_the_same(tools: Tools, sent: str, new_topic: NewTopic) -> None:
    copy = new_topic()
    words = ("--topic", copy, *properties("--reader-property", *READER))
    assert ours(tools, "console-producer", *words, stdin=LINES) == (0, "")
    columns = properties("--formatter-property", *(f"print.{name}=true" for name in COLUMNS[1:]))
    asked = (*EVERYTHING, *columns)
    assert apaches(tools, CONSUMER, "--topic", copy, *asked) == apaches(tools, CONSUMER, "--topic", sent, *asked)


@pytest.mark.long
def test_both_refuse_the_same_lines(tools: Tools, new_topic: NewTopic) -> None:
    topic = new_topic()
    for reader, line in (
        ("parse.key=true", "none\n"),
        ("parse.headers=true", "a\tb\n"),
        ("parse.headers=true", "\tb\n"),
    ):
        words = ("--topic", topic, "--reader-property", reader)
        assert ours(tools, "console-producer", *words, stdin=line) == (1, "")
        assert apaches(tools, PRODUCER, *words, stdin=line) == (1, "")


@pytest.mark.long
def test_both_decode_the_internal_topics(tools: Tools, sent: str, group_id: str) -> None:
    group = ("--topic", sent, "--group", group_id, "--from-beginning", "--max-messages", "3")
    assert apaches(tools, CONSUMER, *group)[0] == 0
    assert ours(tools, "produce", sent, "--transactional-id", group_id, stdin="in a transaction\n") == (0, "")
    for topic, formatter, name in (
        ("__consumer_offsets", "OffsetsMessageFormatter", "group"),
        ("__consumer_offsets", "GroupMetadataMessageFormatter", "group"),
        ("__transaction_state", "TransactionLogMessageFormatter", "transactionalId"),
    ):
        asked = (
            "--topic",
            topic,
            "--from-beginning",
            "--timeout-ms",
            "1500",
            "--formatter",
            f"{FORMATTERS}{formatter}",
        )
        mine = of_one(ours(tools, "console-consumer", *asked)[1], name, group_id)
        theirs = of_one(apaches(tools, CONSUMER, *asked)[1], name, group_id)
        assert mine == theirs
        assert mine


def of_one(printed: str, name: str, value: str) -> list[str]:
    """The JSON of one group or transactional id, as it was printed; no line ends stand between values."""
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(printed):
        record, end = decoder.raw_decode(printed, at)
        if record["key"]["data"][name] == value:
            found.append(printed[at:end])
        at = end
    return found
