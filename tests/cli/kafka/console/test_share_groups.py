"""Records of share groups, as a broker of Apache Kafka 4.3.1 wrote them, and what its own formatters print of them."""

from __future__ import annotations

from base64 import b64decode

import pytest

from moldau.cli.kafka.console.formatters import NEW_PACKAGE, formatter
from moldau.client.fetched import FetchedRecord

STATE, GROUP = "group.share.ShareGroupStateMessageFormatter", "ShareGroupMessageFormatter"
WRITTEN = [
    (
        STATE,
        "AAEAAWfQnq7vS6JP3J/9cxsrpdSLAAAAAA==",
        "AAAAAAAAAAAAAAAAAAAAAAAAAgAAAAAAAAAAAAAAAAAAAAICAAEAAQAEAAAAAw==",
        '{"key":{"type":1,"data":{"groupId":"g","topicId":"0J6u70uiT9yf_XMbK6XUiw","partition":0}},"value":{"version":0,'
        '"data":{"snapshotEpoch":0,"leaderEpoch":0,"startOffset":0,"deliveryCompleteCount":3,"stateBatches":'
        '[{"firstOffset":0,"lastOffset":2,"deliveryState":2,"deliveryCount":1}]}}}',
    ),
    (
        GROUP,
        "AAoAAWcAFmh4TkNjakM3UVcycjVfd1hmVlE1Vnc=",
        "AAAAF2NvbnNvbGUtc2hhcmUtY29uc3VtZXILLzEyNy4wLjAuMQIHb3JkZXJzAA==",
        '{"key":{"type":10,"data":{"groupId":"g","memberId":"hxNCcjC7QW2r5_wXfVQ5Vw"}},"value":{"version":0,"data":'
        '{"rackId":null,"clientId":"console-share-consumer","clientHost":"/127.0.0.1","subscribedTopicNames":["orders"]}}}',
    ),
    (GROUP, "AAIAAWc=", "", ""),  # of a group of the classic protocol
]


@pytest.mark.parametrize(("name", "key", "value", "printed"), WRITTEN)
def test_what_apache_kafka_prints(name: str, key: str, value: str, printed: str) -> None:
    record = FetchedRecord("t", 0, 0, 0, False, 0, b64decode(key), b64decode(value), ())
    assert formatter(f"{NEW_PACKAGE}{name}", {})(record).decode() == printed
