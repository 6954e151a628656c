"""Records that don't fit, kept once each with what is known of them, and sent back once each."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException

from moldau.client.security import ClientSettings
from moldau.core.ids import TopicPartition
from moldau.spark.clients.librdkafka import NoAnswer
from moldau.spark.dead_letters import letters
from moldau.spark.dead_letters.letters import HEADER_PREFIX, Letter, LetterBox, WrittenLetters, count_letters
from moldau.spark.dead_letters.rejections import RejectionCounts, rejection_rules
from moldau.spark.dead_letters.sending_back import open_letter, send_back
from moldau.spark.offsets import committed
from moldau.spark.offsets.bounds import OffsetRange
from tests.spark.tables.postgresql import free_port
from tests.spark.topics import Topics


def letter(offset: int, value: bytes | None = b"bad", *, headers: letters.Headers | None = None) -> Letter:
    return Letter(
        offset, timestamp_ms=1_700_000_000_000, key=b"k", value=value, headers=headers or [], reason="value: no"
    )


class World:
    """A source topic with its letters' topic, and boxes of tasks on it."""

    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        self.source = topics.create("source", partitions=2)
        self.letters = f"{self.source}.dead-letters"
        self.group = topics.name("täglich\n")
        self.client: ClientSettings = (("bootstrap.servers", topics.bootstrap),)

    def box(self, start: int, end: int, *, split: int = 0, topic: str | None = "") -> LetterBox:
        range_ = OffsetRange(TopicPartition(self.source, 0), start, end)
        topic = self.letters if topic == "" else topic
        return LetterBox(self.client, topic=topic, group=self.group, query="orders", range_=range_, split=split)

    def write(self, start: int, end: int, *offsets: int, split: int = 0) -> int:
        box = self.box(start, end, split=split)
        box.add(letter(offset) for offset in offsets)
        return box.close()

    def written(self) -> list[str]:
        """The offsets of the letters that a reader of committed records sees, in order."""
        rows = self.topics.rows(self.letters)
        return sorted(((dict(row.headers)[f"{HEADER_PREFIX}offset"] or b"").decode() for row in rows), key=int)


@pytest.fixture
def world(topics: Topics) -> World:
    return World(topics)


def test_a_letter_has_the_record_and_what_is_known_of_it(world: World) -> None:
    box = world.box(0, 10)
    box.add([letter(3, headers=[("trace", b"\xff"), ("trace", None)])])
    assert box.close() == 1
    (row,) = world.topics.rows(world.letters)
    assert (row.key, row.value) == (b"k", b"bad")
    assert row.headers == (
        ("trace", b"\xff"),
        ("trace", None),
        ("moldau.dead-letter.topic", world.source.encode()),
        ("moldau.dead-letter.partition", b"0"),
        ("moldau.dead-letter.offset", b"3"),
        ("moldau.dead-letter.timestamp", b"1700000000000"),
        ("moldau.dead-letter.query", b"orders"),
        ("moldau.dead-letter.reason", b"value: no"),
    )


def test_a_range_that_runs_again_writes_nothing_twice(world: World) -> None:
    assert world.write(0, 10, 3, 5) == 2
    assert world.write(0, 10, 3, 5) == 0
    assert world.write(0, 20, 3, 5, 12) == 1, "a batch that grew writes what is new"
    assert world.write(20, 30, 25) == 1
    assert world.written() == ["3", "5", "12", "25"]
    place = TopicPartition(world.source, 0)
    assert count_letters(world.client, world.group, [place, TopicPartition(world.source, 1)]) == {place: 4}


def test_a_task_that_died_in_its_transaction_left_nothing(world: World) -> None:
    dying = world.box(0, 10)
    producer = dying._producer = dying._open()
    producer.begin_transaction()
    producer.produce(world.letters, b"half", headers=[(f"{HEADER_PREFIX}offset", b"999")])
    producer.flush(10)
    assert world.write(0, 10, 3) == 1
    assert world.written() == ["3"]
    dying.held.append(letter(3))
    assert dying.close() == 0, "a run that comes back from the dead finds the range done"
    with pytest.raises(KafkaException, match=r"(?i)fenced"):
        producer.commit_transaction(10)
    assert world.written() == ["3"]


def test_parts_of_a_partition_finish_in_any_order(world: World) -> None:
    assert world.write(10, 20, 15, split=1) == 1
    assert world.write(0, 10, 5, split=0) == 1
    assert world.write(10, 20, 15, split=1) == 0
    assert world.written() == ["5", "15"]
    assert count_letters(world.client, world.group, [TopicPartition(world.source, 0)], splits=2) == {
        TopicPartition(world.source, 0): 2
    }


def test_a_range_that_is_cut_in_another_way_writes_nothing_twice(world: World) -> None:
    """As when a batch was too large for its transactions, and its tasks are made smaller, or larger again."""
    assert world.write(0, 100, 10, 60) == 2
    assert [world.write(0, 50, 10), world.write(50, 100, 60, split=1)] == [0, 0]
    assert [world.write(100, 150, 120), world.write(150, 200, 170, split=1)] == [1, 1]
    assert world.write(100, 200, 120, 170) == 0
    assert world.written() == ["10", "60", "120", "170"]
    place = TopicPartition(world.source, 0)
    assert count_letters(world.client, world.group, [place], splits=2) == {place: 4}


def test_offsets_that_were_never_read_are_not_taken_for_done(world: World) -> None:
    assert world.write(100, 110, 105) == 1
    assert world.write(0, 10, 5) == 1, "the query went back to where it had not been"
    assert world.written() == ["5", "105"]


def test_a_letter_may_be_as_large_as_records_of_its_source(topics: Topics) -> None:
    source = topics.create("large", config={"max.message.bytes": str(6 << 20)})
    value = bytes(5 << 20)
    topics.produce_large(source, value)
    client: ClientSettings = (("bootstrap.servers", topics.bootstrap),)
    range_ = OffsetRange(TopicPartition(source, 0), 0, 1)
    box = LetterBox(client, topic=f"{source}.dead-letters", group=source, query="orders", range_=range_)
    box.add([letter(0, value)])
    assert box.close() == 1
    assert send_back(client, f"{source}.dead-letters").by_topic == {source: 1}
    assert [row.value == value for row in topics.rows(source)] == [True, True]


def test_a_count_that_can_not_be_had_ends_no_query(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed, "ANSWER_S_MAX", 0.5)
    place = TopicPartition("gone", 0)
    nobody: ClientSettings = (("bootstrap.servers", f"127.0.0.1:{free_port()}"),)
    counts = RejectionCounts(rejection_rules({"onError": "skip"}), nobody)
    assert counts.report("group", [place], splits=1) == 0


def test_many_letters_are_written_in_pieces_and_a_second_run_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters, "HELD_LETTERS_MAX", 10)
    dying = world.box(0, 100)
    dying.add(
        letter(offset) for offset in range(0, 25)
    )  # two pieces are written, five letters are held, and then it dies
    assert dying.written == 20
    assert world.write(0, 100, *range(0, 40)) == 20
    assert world.written() == [str(offset) for offset in range(40)]


def test_what_is_skipped_is_counted_once(world: World) -> None:
    for _ in range(2):
        box = world.box(0, 10, topic=None)
        box.add([letter(1), letter(2)])
        box.close()
    place = TopicPartition(world.source, 0)
    assert count_letters(world.client, world.group, [place], kind=letters.SKIPPED_GROUP) == {place: 2}
    assert count_letters(world.client, world.group, [place]) == {}


@pytest.mark.parametrize(
    ("done", "grown"),
    [
        (WrittenLetters(), WrittenLetters(5, 9, 1)),
        (WrittenLetters(2, 5, 0), WrittenLetters(2, 9, 1)),
        (WrittenLetters(2, 12, 0), WrittenLetters(2, 12, 1)),
        (WrittenLetters(2, 4, 0), WrittenLetters(5, 9, 1)),
        (WrittenLetters(6, 20, 0), WrittenLetters(5, 9, 1)),
    ],
)
def test_a_stretch_grows_only_where_the_range_touches_it(done: WrittenLetters, grown: WrittenLetters) -> None:
    assert done.grown(OffsetRange(TopicPartition("t", 0), 5, 9), end=9, letters=1) == grown


def test_letters_go_back_once_as_they_were(world: World) -> None:
    box = world.box(0, 10)
    box.add([letter(3, headers=[("trace", b"1")]), letter(4, None)])
    box.close()
    sent = send_back(world.client, world.letters)
    assert (sent.by_topic, sent.not_letters) == ({world.source: 2}, 0)
    assert send_back(world.client, world.letters).total == 0
    rows = world.topics.rows(world.source)
    assert [(row.partition, row.key, row.value, row.headers) for row in rows] == [
        (0, b"k", b"bad", (("trace", b"1"),)),
        (0, b"k", None, ()),
    ]
    assert world.write(10, 20, 12) == 1
    assert send_back(world.client, world.letters).total == 1


def test_letters_of_a_topic_that_was_made_anew_go_back_beside_the_old_ones(world: World) -> None:
    world.topics.create_named(world.letters)
    for text in ("of the old topic", "of the old topic", "of the new one"):  # two queries, and another record
        headers = letters.letter_headers(letter(3), TopicPartition(world.source, 0), "orders")
        world.topics.produce(world.letters, [text], headers=headers)
    sent = send_back(world.client, world.letters)
    assert (sent.by_topic, sent.repeated) == ({world.source: 2}, 1)
    assert [row.value for row in world.topics.rows(world.source)] == [b"of the old topic", b"of the new one"]


def test_what_is_no_letter_stays(world: World) -> None:
    world.topics.create_named(world.letters)
    world.topics.produce(world.letters, [b"hello"])
    sent = send_back(world.client, world.letters)
    assert (sent.total, sent.not_letters) == (0, 1)


def test_a_topic_that_is_not_there_is_one_clear_line(world: World) -> None:
    with pytest.raises(NoAnswer, match="letters of nowhere cannot be sent back"):
        send_back(world.client, "nowhere")


def test_a_letter_about_a_letter_is_opened_once() -> None:
    inner = letters.letter_headers(letter(1), TopicPartition("source", 0), "q")
    outer = letters.letter_headers(letter(7, headers=inner), TopicPartition("source.dead-letters", 2), "q")
    opened = open_letter(outer)
    assert opened is not None
    assert (opened.place, opened.headers) == (TopicPartition("source.dead-letters", 2), inner)
    assert open_letter(None) is None
