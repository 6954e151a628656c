"""Where Moldau's answer may differ from Apache Kafka's, and why. Anything else that differs fails the tests.

A row that no longer matches anything fails them too, so that this list is always the whole and present truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tests.differential.world import Step

ANYTHING: Any = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """Patterns, as of file names, for a scenario, its steps and the fields of their answers."""

    scenario: str
    step: str
    field: str
    reason: str
    theirs: Any = ANYTHING

    def covers(self, scenario: str, one: Disagreement) -> bool:
        return (
            fnmatchcase(scenario, self.scenario)
            and fnmatchcase(one.step, self.step)
            and fnmatchcase(one.path, self.field)
            and self.theirs in (ANYTHING, one.theirs)
        )


OPAQUE = (
    "Apache Kafka opens every batch; to us it is opaque unless the topic's configuration demands a look, so what "
    "contradicts a header with a right checksum is stored as the producer sent it."
)
UNEXPECTED = "Apache Kafka did not expect it and answers with an unknown server error; we answer what is wrong."
LENIENT = (
    "Apache Kafka did not expect it and answers with an unknown server error; we read it as the nearest right value."
)
WORDS = "The code is the same; the words are each broker's own."

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "*",
        "Produce *",
        "*.error_message",
        "Where Apache Kafka refuses a partition and leaves the message null, we say why.",
        theirs=None,
    ),
    Difference(
        "produce.null_records",
        "*",
        "*",
        "Apache Kafka trips over null records and never answers; we refuse the partition and go on.",
    ),
    Difference(
        "produce.twice_in_one_request",
        "*",
        "*",
        "A partition named twice: Apache Kafka drops the first of the two record sets in silence; we append both.",
    ),
    Difference(
        "configs.listeners_altered",
        "IncrementalAlterConfigs *",
        "*.error_message",
        "We name the key that was set, with its listener.",
    ),
    Difference("record_batches.damaged", "*size huge", "*.error_code", UNEXPECTED, theirs=-1),
    Difference("record_batches.lying_counts", "*agree on six, codec 1", "*", OPAQUE),
    Difference("record_batches.lying_records", "*, codec 3", "*", OPAQUE),
    Difference("record_batches.lying_records", "*header*, codec 0", "*", OPAQUE),
    Difference("record_batches.foreign_codecs", "* codec [567]", "*.error_code", UNEXPECTED, theirs=-1),
    Difference("record_batches.foreign_codecs", "*not what codec *", "*", OPAQUE),
    Difference("record_batches.timestamps_at_odds", "*", "*", OPAQUE),
    Difference("fetch.size_limits", "*limit -1*", "*", LENIENT),
    Difference("fetch.isolation", "*unknown isolation", "*", LENIENT),
    Difference(
        "fetch.replicas",
        "Fetch v17 *",
        "node_endpoints*",
        "A client that says it is a broker is told the leader's address too, as any other client is.",
    ),
    Difference(
        "fetch_sessions.a_topic_deleted",
        "Fetch v13 *",
        "*.error_code",
        "Apache Kafka's sessions remember the name behind an id; ours say that the id is unknown. Clients do the same.",
        theirs=3,
    ),
    Difference(
        "offsets.without_timestamps",
        "* timestamp -3",
        "*",
        "Records without timestamps have no largest one; Apache Kafka gives the first offset.",
    ),
    Difference("offsets.listing_as", "*isolation 2", "*", LENIENT),
    Difference(
        "cluster.by_id",
        "Metadata v1[01] *",
        "*",
        "Asked for topics by id before version 12 both refuse them; Apache Kafka leaves out the brokers as well.",
    ),
    Difference("cluster.by_id", "Metadata v1[23] zero id", "*", UNEXPECTED),
    Difference("cluster.by_id", "Metadata v1[23] null name", "*", UNEXPECTED),
    Difference(
        "cluster.created_by_asking",
        "* first",
        "topics.*",
        "Apache Kafka says that the topic is unknown and creates it meanwhile; with us it is there when we answer.",
    ),
    Difference("cluster.coordinators", "*", "*error_message", WORDS),
    Difference("cluster.topic_partitions", "*empty name", "*", UNEXPECTED),
    Difference(
        "topics.created_with_configs", "*spaces", "*.value", "We keep a configured number as it was understood."
    ),
    Difference("topics.partitions_grow", "*too many", "results.0.error_*", UNEXPECTED),
    Difference("configs.unknown_resources", "*", "*.error_message", WORDS),
    Difference("configs.brokers_changed_within_bounds", "*", "*.error_message", WORDS),
    Difference("configs.unknown_operations", "*", "*.error_*", UNEXPECTED),
    Difference("transactions.markers_by_hand", "WriteTxnMarkers * epoch -1", "*.error_code", UNEXPECTED, theirs=-1),
)


@dataclass(frozen=True, slots=True)
class Disagreement:
    step: str
    path: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.step}: {self.path or 'answer'}: Apache Kafka says {self.theirs!r}, we say {self.ours!r}"


MISSING = "nothing"
RECORDS = ".records"  # compared as a whole: the batches of one partition


def disagreements(theirs: list[Step], ours: list[Step]) -> Iterator[Disagreement]:
    """Every field of every answer that is not the same, in the order of the steps."""
    for (step, their_answer), (_, our_answer) in zip(theirs, ours, strict=True):
        if their_answer != our_answer:
            left, right = dict(leaves(their_answer)), dict(leaves(our_answer))
            for path in left | right:
                if left.get(path, MISSING) != right.get(path, MISSING):
                    yield Disagreement(step, path, left.get(path, MISSING), right.get(path, MISSING))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list) and value and not path.endswith(RECORDS):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in items:
            yield from leaves(one, f"{path}.{key}" if path else str(key))
    else:
        yield path, value
