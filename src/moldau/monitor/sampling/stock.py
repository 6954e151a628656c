"""What changes slowly and costs brokers more than offsets do: sizes on disk, topics' cleanup policies, the release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from moldau.client.cluster import Cluster, NoAnswer, words_of
from moldau.client.connection import Unsupported
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.core.metadata_versions import METADATA, metadata_name
from moldau.monitor.sampling.topics import Layout
from moldau.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from moldau.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

EVERY_MS = 60_000
TOPICS_AT_ONCE_MAX = 1_000
CLEANUP_POLICY = "cleanup.policy"
TOPIC = 2  # as the type of a resource


@dataclass(frozen=True, slots=True)
class LogDir:
    broker: int
    path: str
    topic_bytes: Mapping[str, int]
    volume_bytes: int | None
    usable_bytes: int | None
    """Of the volume; None where the broker does not say."""

    @property
    def used_bytes(self) -> int:
        return sum(self.topic_bytes.values())


@dataclass(frozen=True, slots=True)
class Stock:
    log_dirs: tuple[LogDir, ...] = ()
    has_all_dirs: bool = False
    """Every directory of every broker answered, so that sizes of topics are whole."""
    cleanup_policies: Mapping[str, str] = field(default_factory=dict)
    release: str = ""
    """Such as v4.3, by the level of metadata.version; empty where no level is told."""
    problems: tuple[str, ...] = ()

    def topic_bytes(self) -> dict[str, int]:
        """On all brokers together."""
        found: dict[str, int] = {}
        for each in self.log_dirs:
            for topic, size in each.topic_bytes.items():
                found[topic] = found.get(topic, 0) + size
        return found


@dataclass(slots=True)
class StockTaker:
    taken: Stock = field(default_factory=Stock)
    next_ms: int = 0

    def look(self, cluster: Cluster, known: Layout, now_ms: int) -> Stock:
        """Anew once a minute. Topics that are new are asked about at once."""
        if now_ms < self.next_ms and known.topics.keys() <= self.taken.cleanup_policies.keys():
            return self.taken
        problems: list[str] = []
        if now_ms >= self.next_ms:
            self.next_ms = now_ms + EVERY_MS
            dirs, are_all = _log_dirs(cluster, known, problems)
            policies = _policies(cluster, known.topics, problems)
            self.taken = Stock(dirs, are_all, policies, _release(cluster, problems), tuple(problems))
        else:
            kept = self.taken
            new = _policies(cluster, known.topics.keys() - kept.cleanup_policies.keys(), problems)
            policies = {**kept.cleanup_policies, **new}
            self.taken = Stock(kept.log_dirs, kept.has_all_dirs, policies, kept.release, kept.problems)
        return self.taken


def _log_dirs(cluster: Cluster, known: Layout, problems: list[str]) -> tuple[tuple[LogDir, ...], bool]:
    found: list[LogDir] = []
    are_all = True
    for broker in known.nodes:
        try:
            answer = cluster.ask_broker(broker, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
        except (NoAnswer, Unsupported, ProtocolViolation) as wrong:
            problems.append(f"log directories: {wrong}")
            are_all = False
            continue
        codes = [answer.error_code, *(each.error_code for each in answer.results)]
        wrong_codes = [code for code in codes if code != ErrorCode.NONE]
        # Before version 3, who may not see them gets an empty answer; no broker is without a directory.
        if wrong_codes or not answer.results:
            are_all = False
            why = words_of(wrong_codes[0] if wrong_codes else ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            problems.append(f"log directories of broker {broker}: {why}")
        found += [
            LogDir(
                broker,
                each.log_dir,
                {topic.name: sum(part.partition_size for part in topic.partitions) for topic in each.topics},
                each.total_bytes if each.total_bytes >= 0 else None,
                each.usable_bytes if each.usable_bytes >= 0 else None,
            )
            for each in answer.results
            if each.error_code == ErrorCode.NONE
        ]
    return tuple(found), are_all


def _policies(cluster: Cluster, topics: Iterable[str], problems: list[str]) -> dict[str, str]:
    """Of each topic; empty where that may not be known."""
    names = sorted(topics)
    found = dict.fromkeys(names, "")
    for at in range(0, len(names), TOPICS_AT_ONCE_MAX):
        chunk = names[at : at + TOPICS_AT_ONCE_MAX]
        request = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(TOPIC, name, [CLEANUP_POLICY]) for name in chunk]
        )
        try:
            answer = cluster.ask(request, DescribeConfigsResponse)
        except (NoAnswer, Unsupported, ProtocolViolation) as wrong:
            problems.append(f"configurations of topics: {wrong}")
            break
        for result in answer.results:
            if result.error_code == ErrorCode.NONE:
                found[result.resource_name] = next((each.value or "" for each in result.configs), "")
            elif result.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # deleted meanwhile
                problems.append(f"configurations of topics: {words_of(result.error_code)}")
    return found


def _release(cluster: Cluster, problems: list[str]) -> str:
    request = ApiVersionsRequest(client_software_name="moldau", client_software_version="1")
    try:
        answer = cluster.ask(request, ApiVersionsResponse)
    except (NoAnswer, Unsupported, ProtocolViolation) as wrong:
        problems.append(f"features: {wrong}")
        return ""
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    name = metadata_name(levels.get(METADATA, 0))
    return f"v{name.partition('-')[0]}" if name else ""
