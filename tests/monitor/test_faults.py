"""What others can't do to a monitor, whatever they call themselves and whatever they leave behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from moldau.client.cluster import Cluster
from moldau.core.clock import SystemClock
from moldau.core.ids import TopicPartition
from moldau.monitor.history import History, UnusableHistory
from moldau.monitor.judging import Judged, Rules
from moldau.monitor.notifying.deciding import Event
from moldau.monitor.notifying.messages import fields
from moldau.monitor.notifying.notifier import Notifier
from moldau.monitor.notifying.sending import Call, HttpSender, NotSent
from moldau.monitor.rules import GroupVerdict, Status
from moldau.monitor.sampling.commits import CommitReader, SeenCommit
from moldau.monitor.sampling.groups import Member, SeenGroup, SeenGroups
from moldau.monitor.sampling.look import Look, Looker
from moldau.monitor.sampling.topics import Layout, Partition, Topic
from moldau.monitor.service import Monitor
from moldau.monitor.serving.metrics.book import Book, text_of
from moldau.monitor.serving.metrics.kminion import write_kminion
from moldau.monitor.serving.metrics.labels import Page
from moldau.monitor.settings import Settings
from moldau.monitor.watching import Watch
from tests.monitor.servers import QuietHandler, serving
from tests.monitor.test_notifying import BILLING, INCIDENT, Silent

PLACE = TopicPartition("orders", 0)
TOPIC = Topic("orders", bytes(16), is_internal=False, partitions=(Partition(PLACE, 0, (0,), (0,)),))
WAIT_S_MAX = 20.0


def look(*groups: SeenGroup) -> Look:
    found = SeenGroups({each.name: each for each in groups})
    known = Layout({}, 0, None, {"orders": TOPIC}, frozenset({"orders"}))
    return Look(1_000_000, known, {PLACE: 0}, {PLACE: 9}, found, (), True, True, {}, ())


def look_by_commits(made: bytes, at_ms: int, *commits: SeenCommit) -> Look:
    """Of a cluster whose topic of commits has this id."""
    topics = {"orders": TOPIC, "__consumer_offsets": Topic("__consumer_offsets", made, is_internal=True, partitions=())}
    group = SeenGroup("billing", "classic", "Stable", committed={PLACE: commits[-1].offset or 0})
    found = look(group)
    known = replace(found.layout, topics=topics, named=frozenset(topics))
    return replace(found, at_ms=at_ms, layout=known, commits=commits)


class Looks:
    """One look after the other, as far as the text says; an exception is raised."""

    def __init__(self, *looks: Look | Exception) -> None:
        self.left = [*looks]
        self.reader = CommitReader()

    def look(self, _: Cluster) -> Look:
        found = self.left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


class Nobody:
    def close(self) -> None:
        pass


def watch_of(*looks: Look | Exception) -> Watch:
    watch = Watch("local", lambda: cast("Cluster", Nobody()), SystemClock(), Rules(), 0.01)
    watch.looker = cast("Looker", Looks(*looks))
    return watch


def test_a_topic_in_an_assignment_makes_up_no_metric() -> None:
    """The leader of a group writes its members' assignments, and brokers do not look into them."""
    wrong = 'orders"} 1\nkafka_consumergroup_lag{consumergroup="billing",topic="orders'
    member = Member("m", "c", "/h", (TopicPartition(wrong, 0), TopicPartition(wrong, 1), PLACE))
    group = SeenGroup("billing", "classic", "Stable", "consumer", (member,), {PLACE: 3})
    book = Book()
    write_kminion(book, Page("local", "", Judged(look(group), {"billing": BILLING}, {"billing": {PLACE: 3}})))
    book.close()
    found = {
        (each.name, each.labels.get("topic_name")): each.value
        for family in text_string_to_metric_families(b"".join(text_of([book])).decode())
        for each in family.samples
    }
    assert not [name for name, _ in found if name.startswith("kafka_consumergroup")]
    name = "kminion_kafka_consumer_group_topic_assigned_partitions"
    assert (found[name, wrong], found[name, "orders"]) == (2, 1)


def test_a_look_that_fails_for_a_fault_of_ours_is_not_the_last(caplog: pytest.LogCaptureFixture) -> None:
    stop = threading.Event()
    watch = watch_of(KeyError("what nobody thought of"), look())
    watch.tell = lambda *_: stop.set()
    thread = threading.Thread(target=watch.run, args=(stop,))
    thread.start()
    thread.join(WAIT_S_MAX)
    assert (thread.is_alive(), watch.failure, watch.state is None) == (False, None, False)
    assert "a look at cluster local failed" in caplog.text


def test_a_cluster_that_was_emptied_begins_anew() -> None:
    """Its commits are counted from 0 again: beside those of before none of them was a new one."""

    def commits(order: int, at_ms: int) -> list[SeenCommit]:
        return [SeenCommit("billing", PLACE, number, at_ms + number * 1_000, order + number) for number in range(3)]

    watch = watch_of(
        look_by_commits(b"1" * 16, 10_000, *commits(5_000, 7_000)),
        look_by_commits(b"2" * 16, 900_000, *commits(0, 897_000)),
    )
    for _ in range(2):
        assert watch.look()
    window = watch.windows.window("billing", PLACE)
    assert window is not None
    assert [each.timestamp_ms for each in window.commits()] == [897_000, 898_000, 899_000]
    assert watch.state is not None
    assert [each.status for each in watch.state.verdicts["billing"].partitions] != [Status.STOP]


def test_groups_that_come_and_go_leave_nothing() -> None:
    names = [f"console-consumer-{number}" for number in range(50)]
    groups = [
        SeenGroup(name, "classic", "Empty", committed={PLACE: at % 2} if at % 3 else {})
        for at, name in enumerate(names)
    ]
    watch = watch_of(look(*groups), look())
    assert watch.look()
    for name in names[:10]:
        watch.windows.poll(name, {PLACE: 5}, now_ms=2_000_000, patience_ms=0, reads_commits=False)
    assert watch.look()
    windows = watch.windows
    assert [len(each) for each in (windows.groups, windows.baselines, windows.changed, windows.gone)] == [0] * 4


@pytest.mark.parametrize(
    "damage",
    [
        "INSERT INTO windows VALUES ('local', 'billing', 'orders', 0, x'00')",
        "INSERT INTO windows VALUES ('local', 'billing', 'orders', 0, NULL)",
        "INSERT INTO positions VALUES ('local', '[')",
        "INSERT INTO positions VALUES ('local', '[]')",
        "INSERT INTO statuses VALUES ('local', 'billing', 77)",
        "DROP TABLE ends",
    ],
)
def test_a_history_that_cannot_be_read_is_told_in_one_line(damage: str, tmp_path: Path) -> None:
    history = History(str(tmp_path / "lag.sqlite"))
    history._file.execute(damage)
    with pytest.raises(UnusableHistory, match=r"lag\.sqlite can't be used as history: "):
        Watch("local", lambda: cast("Cluster", Nobody()), SystemClock(), Rules(), 1.0, keeper=history)
    history.close()


class Meanwhile(dict[str, GroupVerdict]):
    """Whenever it is asked, the thread of another cluster has an incident more."""

    def __init__(self, notifier: Notifier) -> None:
        super().__init__()
        self.notifier = notifier

    def __contains__(self, _: object) -> bool:
        self.notifier.incidents["other", f"{len(self.notifier.incidents)}"] = INCIDENT
        return True


def test_threads_of_other_clusters_have_incidents_meanwhile() -> None:
    """A dictionary that grew while somebody went through it ended the thread that did."""
    notifier = Notifier("pager", Silent())
    notifier.incidents |= {("local", f"{number}"): INCIDENT for number in range(3)}
    notifier.tell("local", Judged(look(), Meanwhile(notifier), {}))
    assert len(notifier.incidents) == 6


@contextmanager
def mover() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """Has moved to another host, and notes who asks for what there."""
    asked: list[tuple[str, str | None]] = []

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            asked.append((f"{self.command} {self.path}", self.headers.get("Authorization")))
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(302 if self.path == "/" else 200)
            self.send_header("Location", f"http://localhost:{self.headers['Host'].partition(':')[2]}/there")
            self.end_headers()

        do_POST = do_GET

    with serving(Handler) as url:
        yield f"{url}/", asked


def test_who_has_moved_was_not_told() -> None:
    """As a GET without a body it would be, and get the password of the host before."""
    with mover() as (url, asked):
        call = Call(Template(url))
        with pytest.raises(NotSent, match="302 Found"):
            HttpSender(call, call, {"Authorization": "Bearer secret"}).send(
                Event.OPEN, fields(Event.OPEN, INCIDENT, BILLING)
            )
    assert asked == [("POST /", "Bearer secret")]


def test_many_clusters_that_hang_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.monitor.service.JOIN_S", 0.3)
    ended = threading.Event()
    monitor = Monitor(Settings(), SystemClock(), {})
    monitor._threads += [threading.Thread(target=ended.wait, daemon=True) for _ in range(10)]
    for each in monitor._threads:
        each.start()
    began_s = time.monotonic()
    monitor.stop()
    took_s = time.monotonic() - began_s
    ended.set()
    assert took_s < 1.5
