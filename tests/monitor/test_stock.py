"""What is asked for once a minute: sizes on disk, cleanup policies, the release; and how metrics are kept."""

from __future__ import annotations

import zlib

from confluent_kafka.admin import AdminClient, NewTopic

from moldau.client.cluster import Cluster
from moldau.monitor.sampling.stock import EVERY_MS, StockTaker
from moldau.monitor.sampling.topics import layout
from moldau.monitor.serving.metrics.book import LINES_MAX, Book, text_of
from moldau.monitor.serving.metrics.pages import zipped
from tests.monitor.worlds import produce


def test_new_topics_are_asked_about_at_once_and_sizes_once_a_minute(bootstrap: str, topic: str) -> None:
    taker = StockTaker()
    with Cluster(bootstrap, client_id="test", timeout_s=10.0) as cluster:
        first = taker.look(cluster, layout(cluster), 0)
        assert (first.has_all_dirs, first.release, first.problems) == (True, "v4.3", ())
        assert first.cleanup_policies[topic] == "delete"
        assert first.topic_bytes()[topic] == 0
        produce(bootstrap, topic, {0: [1_000] * 10})
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(f"{topic}-2", 1, 1, config={"cleanup.policy": "compact"})])[f"{topic}-2"].result(
            20
        )
        soon = taker.look(cluster, layout(cluster), EVERY_MS - 1)
        assert soon.cleanup_policies[f"{topic}-2"] == "compact"
        assert soon.topic_bytes()[topic] == 0
        later = taker.look(cluster, layout(cluster), EVERY_MS)
    assert later.topic_bytes()[topic] > 0
    (log_dir,) = later.log_dirs
    assert later.topic_bytes()[topic] <= log_dir.used_bytes
    assert log_dir.volume_bytes is not None
    assert 0 < (log_dir.usable_bytes or 0) < log_dir.volume_bytes


def test_samples_of_several_clusters_stand_under_one_head() -> None:
    books = [Book(), Book()]
    for book, cluster in zip(books, "ab", strict=True):
        metric = book.metric("lag", "Unread records.")
        metric.add(f'lag{{cluster="{cluster}"}} 1')
        book.close()
    books[1].metric("only_b", "Of one.").add("only_b 2")
    books[1].close()
    assert b"".join(text_of(books)).decode().splitlines() == [
        "# HELP lag Unread records.",
        "# TYPE lag gauge",
        'lag{cluster="a"} 1',
        'lag{cluster="b"} 1',
        "# HELP only_b Of one.",
        "# TYPE only_b gauge",
        "only_b 2",
    ]


def test_many_lines_are_packed_while_they_are_written() -> None:
    book = Book()
    metric = book.metric("lag", "Unread records.")
    lines = [f'lag{{group="{number}"}} 1' for number in range(3 * LINES_MAX)]
    for line in lines:
        metric.add(line)
        book.pack_full()
    assert metric.packed_bytes > 0
    book.close()
    text = b"".join(text_of([book]))
    assert text.decode().splitlines()[2:] == lines
    assert metric.packed_bytes < len(text) / 5
    assert zlib.decompress(b"".join(zipped(text_of([book]))), 31) == text
