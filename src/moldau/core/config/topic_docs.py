"""One sentence on each topic key, as DescribeConfigs gives it to those who ask for documentation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TOPIC_DOCS: Mapping[str, str] = MappingProxyType({
    "segment.bytes": "A segment file is closed and a new one begun before it grows beyond this many bytes.",
    "segment.ms": "A segment that is not full is closed after this time, so that retention and compaction reach it.",
    "segment.jitter.ms": "Up to this much is taken off segment.ms at random, so that many segments don't roll at once.",
    "segment.index.bytes": "The size at which an offset or time index is full and its segment rolls.",
    "flush.messages": "After this many records the log is forced to disk; 1 makes every write wait for the disk.",
    "flush.ms": "The longest time that written records stay unforced in the page cache.",
    "retention.bytes": "Old segments go when a partition is larger than this; -1 sets no bound by size.",
    "retention.ms": "Old segments go when their youngest record is older than this; -1 keeps them for ever.",
    "max.message.bytes": "The largest record batch that is accepted, after compression.",
    "index.interval.bytes": "How many bytes of records lie between two entries of the offset index.",
    "delete.retention.ms": "How long a compacted topic keeps tombstones for readers that start from the beginning.",
    "min.compaction.lag.ms": "A record is not compacted away before it has this age.",
    "max.compaction.lag.ms": "A record becomes eligible for compaction at this age at the latest.",
    "file.delete.delay.ms": "How long a deleted file stays on disk under another name before it is removed.",
    "min.cleanable.dirty.ratio": "The share of a log that must be uncompacted before it is compacted again.",
    "cleanup.policy": "What becomes of old segments: delete drops them, compact keeps each key's last record.",
    "unclean.leader.election.enable": "Whether a replica that is not in sync may lead if none else can.",
    "min.insync.replicas": "How many replicas must hold a record before a write with acks=all is acknowledged.",
    "compression.type": "The codec that the log is kept in; producer keeps what the producer chose.",
    "compression.gzip.level": "The level used when compression.type is gzip.",
    "compression.lz4.level": "The level used when compression.type is lz4.",
    "compression.zstd.level": "The level used when compression.type is zstd.",
    "preallocate": "Whether a new segment's file gets its full size at once.",
    "message.timestamp.type": "Whether a record carries the time of its creation or of its append.",
    "message.timestamp.before.max.ms": "How far a record's CreateTime may lie behind the broker's clock.",
    "message.timestamp.after.max.ms": "How far a record's CreateTime may lie ahead of the broker's clock.",
    "leader.replication.throttled.replicas": "Replicas, as partition:broker or *, whose reading followers are slowed.",
    "follower.replication.throttled.replicas": "Replicas, as partition:broker or *, that are slowed as followers.",
    "remote.storage.enable": "Whether closed segments are copied to tiered storage.",
    "local.retention.ms": "How long segments stay on local disk once tiered; -2 follows retention.ms.",
    "local.retention.bytes": "How many bytes stay on local disk once tiered; -2 follows retention.bytes.",
    "remote.log.copy.disable": "Whether copying to tiered storage is paused while reading it goes on.",
    "remote.log.delete.on.disable": "Whether tiered data is deleted when tiered storage is turned off for the topic.",
    "internal.segment.bytes": "The segment size without its lower bound, for tests.",
})  # fmt: skip
