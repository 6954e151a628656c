"""Apache Kafka's own test of what a broker lets its newest clients do."""

from __future__ import annotations

from tests.brokers import count_of
from tests.suites.conftest import NewTopic
from tests.suites.tools import CLIENT_COMPATIBILITY, Tools

SUPPORTED = (
    "offsets-for-times-supported",
    "cluster-id-supported",
    "create-topics-supported",
    "describe-acls-supported",
    "describe-configs-supported",
    "idempotent-producer-supported",
)


def test_everything_is_supported(tools: Tools, new_topic: NewTopic, broker_kind: str) -> None:
    supported = [word for name in SUPPORTED for word in (f"--{name}", "true")]
    # A reader gets a record that is larger than it asked for, as since Kafka 0.10.1.
    told = tools.run(
        CLIENT_COMPATIBILITY, "--topic", new_topic(), "--num-cluster-nodes", str(count_of(broker_kind)),
        "--expect-record-too-large-exception", "false", *supported,
    )  # fmt: skip
    assert (told.exit_code, told.lines[-1]) == (0, "SUCCESS."), told
