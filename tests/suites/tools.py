"""Apache Kafka's command-line tools in one JVM, and what they print as tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

TRANSCRIPTS = Path(__file__).parent / "transcripts"

DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
CLIENT_METRICS = "org.apache.kafka.tools.ClientMetricsCommand"
ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
REASSIGNMENT = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
CLUSTER = "org.apache.kafka.tools.ClusterTool"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
REPLICA_VERIFICATION = "org.apache.kafka.tools.ReplicaVerificationTool"
CLIENT_COMPATIBILITY = "org.apache.kafka.tools.ClientCompatibilityTest"
ACLS = "org.apache.kafka.tools.AclCommand"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
END_TO_END = "org.apache.kafka.tools.EndToEndLatency"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"


class Host(Protocol):
    """Runs tools by their classes: `{"class", "args", "stdin"}` is answered by `{"exit", "out", "err"}`."""

    def ask(self, request: dict[str, Any], /) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Printed:
    """What a tool left behind; some tell of failures on standard output and end with 0."""

    exit_code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.out.splitlines() if line.strip()]

    @property
    def table(self) -> list[list[str]]:
        """The cells of each line, the heads too; a cell of these tools has no spaces in it."""
        return [line.split() for line in self.lines]


@dataclass(frozen=True, slots=True)
class Tools:
    host: Host
    bootstrap: str

    def run(self, tool: str, *args: str, is_address_last: bool = False) -> Printed:
        address = ("--bootstrap-server", self.bootstrap)
        words = [*args, *address] if is_address_last else [*address, *args]
        done = self.host.ask({"class": tool, "args": words, "stdin": ""})
        return Printed(int(done["exit"]), str(done["out"]), str(done["err"]))

    def groups(self, *args: str) -> Printed:
        return self.run(GROUPS, *args)

    def transactions(self, *args: str) -> Printed:
        return self.run(TRANSACTIONS, *args)
