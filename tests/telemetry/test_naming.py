from __future__ import annotations

import pytest

from moldau.telemetry.naming import label_name, labels_of, metric_name, rendered


@pytest.mark.parametrize(
    ("name", "unit", "is_counter", "shown"),
    [
        ("org.apache.kafka.consumer.poll.idle.ratio.avg", "", False, "org_apache_kafka_consumer_poll_idle_ratio_avg"),
        ("org.apache.kafka.producer.record.send.total", "1", True, "org_apache_kafka_producer_record_send_total"),
        ("a.requests", "", True, "a_requests_total"),
        ("a.latency", "ms", False, "a_latency_milliseconds"),
        ("a.latency.seconds", "s", False, "a_latency_seconds"),
        ("a.bytes.total", "By", True, "a_bytes_total"),
        ("a.size.total", "By", True, "a_size_bytes_total"),
        ("a--b  c", "", False, "a_b_c"),
        ("9.lives", "", False, "_9_lives"),
        ("", "", False, "_"),
        ("größe", "", False, "gr_e"),
    ],
)
def test_names(name: str, unit: str, is_counter: bool, shown: str) -> None:
    assert metric_name(name, unit, is_counter=is_counter) == shown


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("node.id", "node_id"),
        ("__name__", "key_name__"),
        ("1st", "key_1st"),
        ("", "key_"),
        ("_a", "key_a"),
        ("le", "key_le"),
    ],
)
def test_labels(key: str, shown: str) -> None:
    assert label_name(key) == shown


def test_the_same_labels_are_the_same_text() -> None:
    one = labels_of({"b": 1, "a": True}, {"c.d": 'x"\n\\'})
    other = labels_of({"c.d": 'x"\n\\'}, {"a": True, "b": 1})
    assert rendered(one) == rendered(other) == 'a="true",b="1",c_d="x\\"\\n\\\\"'
