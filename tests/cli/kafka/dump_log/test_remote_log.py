"""Records of tiered storage, as Apache Kafka 4.3.1 writes them, and what its own classes say of them."""

from __future__ import annotations

from base64 import b64decode

import pytest

from moldau.cli.kafka.console.formatters import REMOTE_PACKAGE, formatter
from moldau.cli.kafka.dump_log.remote_log import remote_log_metadata
from moldau.client.fetched import FetchedRecord
from moldau.wire.batch import Record

SEGMENT = "RemoteLogSegmentId{topicIdPartition=0J6u70uiT9yf_XMbK6XUiw:orders-3, id=hxNCcjC7QW2r5_wXfVQ5Vw}, "
BEGUN = (
    "startOffset=10, endOffset=99, brokerId=1, maxTimestampMs=1700000000000, eventTimestampMs=1700000000500,"
    " segmentLeaderEpochs={0=10, 4=15}, segmentSizeInBytes=4096, "
)
WRITTEN = [
    (
        "AQAAB29yZGVyc9Ceru9Lok/cn/1zGyul1IsAAAADAIcTQnIwu0Ftq+f8F31UOVcAAAAAAAAAAAoAAAAAAAAAYwAAAAEAAAGLz+VoAAAAAYvP5Wn0"
        "AwAAAAAAAAAAAAAACgAAAAAEAAAAAAAAAA8AAAAQAAAAAA==",
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={SEGMENT}{BEGUN}customMetadata=Optional.empty,"
        " state=COPY_SEGMENT_STARTED, txnIdxEmpty=false}",
    ),
    (
        "AQAAB29yZGVyc9Ceru9Lok/cn/1zGyul1IsAAAADAIcTQnIwu0Ftq+f8F31UOVcAAAAAAAAAAAoAAAAAAAAAYwAAAAEAAAGLz+VoAAAAAYvP5Wn0"
        "AwAAAAAAAAAAAAAACgAAAAAEAAAAAAAAAA8AAAAQAAQBAv0BAQABAQ==",
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={SEGMENT}{BEGUN}"
        "customMetadata=Optional[CustomMetadata{3 bytes}], state=COPY_SEGMENT_FINISHED, txnIdxEmpty=true}",
    ),
    (
        "AQEAB29yZGVyc9Ceru9Lok/cn/1zGyul1IsAAAADAIcTQnIwu0Ftq+f8F31UOVcAAAAAAgAAAYvP5WuEAwECAgA=",
        f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={SEGMENT}"
        "customMetadata=Optional[CustomMetadata{2 bytes}], state=DELETE_SEGMENT_STARTED,"
        " eventTimestampMs=1700000000900, brokerId=2}",
    ),
    (
        "AQIAB29yZGVyc9Ceru9Lok/cn/1zGyul1IsAAAADAAAAAAIAAAGLz+VrhAAA",
        "RemotePartitionDeleteMetadata{topicPartition=0J6u70uiT9yf_XMbK6XUiw:orders-3, state=DELETE_PARTITION_MARKED,"
        " eventTimestampMs=1700000000900, brokerId=2}",
    ),
]


@pytest.mark.parametrize(("value", "told"), WRITTEN)
def test_what_apache_kafka_says(value: str, told: str) -> None:
    content = b64decode(value)
    assert remote_log_metadata(record(content)) == (None, told)
    show = formatter(f"{REMOTE_PACKAGE}RemoteLogMetadataSerde$RemoteLogMetadataFormatter", {})
    printed = show(FetchedRecord("t", 3, 7, 0, False, 0, None, content, ()))
    assert printed.decode() == f"partition: 3, offset: 7, value: {told}\n"


@pytest.mark.parametrize("value", [b"", b"\x01\x09\x00", b"\x02\x00\x00", b"\x01\x00\x05", b"\x01\x02\x00\x07ord"])
def test_what_is_none_is_told_with_its_offset(value: bytes) -> None:
    key, told = remote_log_metadata(record(value))
    assert key is None
    assert told is not None
    assert told.startswith("Error at offset 5, skipping. ")


def record(value: bytes) -> Record:
    return Record(5, 0, None, value)
