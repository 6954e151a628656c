"""Codes and messages are what Apache Kafka 4.3.1 answered to the same requests."""

from __future__ import annotations

import pytest

from moldau.controller.image import PartitionImage, TopicImage
from moldau.controller.machine import apply
from moldau.controller.records import (
    BrokerConfigsChanged,
    ClientMetricsConfigsChanged,
    GroupConfigsChanged,
    TopicConfigsChanged,
)
from moldau.controller.settings.configs import (
    AlterConfigOp,
    AlteredResource,
    ConfigChange,
    ResourceChange,
    decide_alter_configs,
    decide_incremental_alter_configs,
)
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER
from tests.controller.clusters import cluster, topic, topic_id

SET, DELETE, APPEND, SUBTRACT = AlterConfigOp
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
CONFIG = BrokerConfig.of({"node.id": "1"})
IMAGE = cluster(topic("orders", configs={"retention.ms": "5"}))


def change(kind: int, name: str, *changes: ConfigChange) -> ResourceChange:
    return ResourceChange(kind, name, changes)


def incremental(*resources: ResourceChange, validate_only: bool = False) -> Decision[list[AlteredResource]]:
    return decide_incremental_alter_configs(IMAGE, resources, config=CONFIG, validate_only=validate_only)


@pytest.mark.parametrize(
    ("key", "value", "operation", "changes"),
    [
        ("retention.ms", "6", SET, {"retention.ms": "6"}),
        ("segment.ms", "7", SET, {"segment.ms": "7"}),
        ("retention.ms", None, DELETE, {"retention.ms": None}),
        ("cleanup.policy", "compact", APPEND, {"cleanup.policy": "delete,compact"}),
        ("cleanup.policy", "compact,delete,compact", APPEND, {"cleanup.policy": "delete,compact"}),
        ("cleanup.policy", "delete", SUBTRACT, {"cleanup.policy": ""}),
        ("cleanup.policy", "zzz", SUBTRACT, {"cleanup.policy": "delete"}),
    ],
)
def test_a_topics_configs_change(key: str, value: str | None, operation: int, changes: dict[str, str | None]) -> None:
    decision = incremental(change(TOPIC, "orders", ConfigChange(key, value, operation)))
    assert decision == Decision((TopicConfigsChanged(topic_id(100), changes),), [AlteredResource(TOPIC, "orders")])


@pytest.mark.parametrize(
    ("key", "value", "operation"), [("retention.ms", "5", SET), ("segment.ms", None, DELETE), ("foo", None, DELETE)]
)
def test_what_stays_the_same_needs_no_record(key: str, value: str | None, operation: int) -> None:
    decision = incremental(change(TOPIC, "orders", ConfigChange(key, value, operation)))
    assert decision == Decision.reply_only([AlteredResource(TOPIC, "orders")])


INVALID_CONFIG, INVALID_REQUEST = ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("resource", "error", "message"),
    [
        (
            change(TOPIC, "nope", ConfigChange("retention.ms", "5")),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'nope' does not exist.",
        ),
        (
            change(TOPIC, "", ConfigChange("retention.ms", "5")),
            INVALID_REQUEST,
            "Default topic resources are not allowed.",
        ),
        (change(TOPIC, "nope", ConfigChange("foo", "5")), INVALID_CONFIG, "Unknown topic config name: foo"),
        (
            change(TOPIC, "orders", ConfigChange("retention.ms", "5", APPEND)),
            INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            change(TOPIC, "orders", ConfigChange("foo", "5", SUBTRACT)),
            INVALID_CONFIG,
            "Can't SUBTRACT to key foo because its type is not LIST.",
        ),
        (
            change(TOPIC, "orders", ConfigChange("cleanup.policy", "zzz", APPEND)),
            INVALID_CONFIG,
            "Invalid value zzz for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            change(TOPIC, "orders", ConfigChange("cleanup.policy", None, APPEND)),
            INVALID_REQUEST,
            "Null value not supported for : cleanup.policy",
        ),
        (
            change(TOPIC, "orders", ConfigChange("segment.ms", "5"), ConfigChange("segment.ms", "6")),
            INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            change(BROKER, "", ConfigChange("leader.replication.throttled.rate", "fast")),
            INVALID_REQUEST,
            "Invalid value fast for configuration leader.replication.throttled.rate: Not a number of type LONG",
        ),
        (change(99, "orders"), INVALID_REQUEST, "Unknown resource type 99"),
        (change(TOPIC, "orders", ConfigChange("segment.ms", "5", 9)), INVALID_REQUEST, "Unknown operations type 9"),
        (
            change(BROKER, "2", ConfigChange("log.retention.ms", "5")),
            INVALID_REQUEST,
            "Unexpected broker id, expected 1, but received 2",
        ),
        (
            change(BROKER, "x", ConfigChange("log.retention.ms", "5")),
            INVALID_REQUEST,
            "Node id must be an integer, but it is: x",
        ),
        (
            change(BROKER, "1", ConfigChange("num.partitions", "5"), ConfigChange("log.retention.hours", "3")),
            INVALID_REQUEST,
            "Cannot update these configs dynamically: [log.retention.hours, num.partitions]",
        ),
        (
            change(BROKER, "", ConfigChange("log.retention.ms", "x")),
            INVALID_REQUEST,
            "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
        ),
        (
            change(BROKER, "1", ConfigChange("log.retention.ms", "5", APPEND)),
            INVALID_CONFIG,
            "Config value append is not allowed for config key: log.retention.ms",
        ),
        (change(BROKER, "1", ConfigChange("foo", "5", APPEND)), INVALID_CONFIG, "Unknown config name: foo"),
    ],
)
def test_what_can_not_change_is_refused(resource: ResourceChange, error: ErrorCode, message: str) -> None:
    expected = AlteredResource(resource.type, resource.name, error, message)
    assert incremental(resource) == Decision.reply_only([expected])


def test_a_resource_that_is_given_twice_is_refused_twice() -> None:
    decision = incremental(change(TOPIC, "orders"), change(TOPIC, "orders"))
    refused = AlteredResource(TOPIC, "orders", INVALID_REQUEST, "Each resource must appear at most once.")
    assert decision == Decision.reply_only([refused, refused])


def test_a_resource_changes_as_a_whole_or_not_at_all() -> None:
    decision = incremental(
        change(TOPIC, "orders", ConfigChange("segment.ms", "5"), ConfigChange("retention.ms", "x")),
        change(BROKER, "", ConfigChange("log.roll.ms", "5"), ConfigChange("unheard.of", "kept")),
    )
    assert [reply.error for reply in decision.reply] == [INVALID_CONFIG, ErrorCode.NONE]
    assert decision.records == (BrokerConfigsChanged("", {"log.roll.ms": "5", "unheard.of": "kept"}),)


@pytest.mark.parametrize(("key", "value"), [("log.retention.ms", "100000"), ("num.io.threads", "8")])
def test_a_default_changes_beside_what_a_broker_has_of_its_own(key: str, value: str) -> None:
    running = CONFIG.with_dynamic({}, {"num.io.threads": "32"})
    default = change(BROKER, "", ConfigChange(key, value))
    decision = decide_incremental_alter_configs(IMAGE, [default], config=running, validate_only=False)
    assert decision == Decision((BrokerConfigsChanged("", {key: value}),), [AlteredResource(BROKER, "")])


def test_what_a_start_accepted_refuses_no_change_of_something_else() -> None:
    running = BrokerConfig.of({"node.id": "1", "log.retention.ms": "1000", "log.local.retention.ms": "5000"})
    more = change(BROKER, "1", ConfigChange("num.io.threads", "9"))
    decision = decide_incremental_alter_configs(IMAGE, [more], config=running, validate_only=False)
    assert decision == Decision((BrokerConfigsChanged("1", {"num.io.threads": "9"}),), [AlteredResource(BROKER, "1")])


def test_broker_configs_come_and_go() -> None:
    image = apply(IMAGE, [BrokerConfigsChanged("1", {"log.roll.ms": "5", "log.retention.ms": "6"})])
    assert image.broker_config("1") == {"log.roll.ms": "5", "log.retention.ms": "6"}
    image = apply(image, [BrokerConfigsChanged("1", {"log.roll.ms": None, "log.retention.ms": None})])
    assert image.broker_configs == {}


def test_the_older_way_takes_away_what_is_not_named() -> None:
    decision = decide_alter_configs(IMAGE, [change(TOPIC, "orders", ConfigChange("segment.ms", "7"))], config=CONFIG)
    assert decision.records == (TopicConfigsChanged(topic_id(100), {"retention.ms": None, "segment.ms": "7"}),)
    assert apply(IMAGE, decision.records).topics["orders"].configs == {"segment.ms": "7"}


def test_validation_alone_changes_nothing() -> None:
    decision = incremental(change(TOPIC, "orders", ConfigChange("retention.ms", "9")), validate_only=True)
    assert decision == Decision.reply_only([AlteredResource(TOPIC, "orders")])


def test_a_subscription_for_client_metrics_is_there_while_it_has_a_value() -> None:
    asked = change(CLIENT_METRICS, "all", ConfigChange("interval.ms", "1000", SET), ConfigChange("metrics", "", SET))
    decision = incremental(asked)
    record = ClientMetricsConfigsChanged("all", {"interval.ms": "1000", "metrics": ""})
    assert decision == Decision((record,), [AlteredResource(CLIENT_METRICS, "all")])
    image = apply(IMAGE, decision.records)
    assert image.client_metrics_configs == {"all": {"interval.ms": "1000", "metrics": ""}}
    gone = decide_alter_configs(image, [change(CLIENT_METRICS, "all")], config=CONFIG)
    assert apply(image, gone.records).client_metrics_configs == {}


def test_there_is_a_limit_to_subscriptions() -> None:
    records = [ClientMetricsConfigsChanged(f"s{each}", {"metrics": "*"}) for each in range(1_000)]
    image = apply(IMAGE, records)

    def errors(name: str) -> list[ErrorCode]:
        asked = change(CLIENT_METRICS, name, ConfigChange("interval.ms", "500", SET))
        return [each.error for each in decide_incremental_alter_configs(image, [asked], config=CONFIG).reply]

    assert errors("one more") == [ErrorCode.POLICY_VIOLATION]
    assert errors("s7") == [ErrorCode.NONE]


def test_a_groups_configs_are_kept_whether_it_exists_or_not() -> None:
    asked = change(GROUP, "billing", ConfigChange("consumer.session.timeout.ms", "50000", SET))
    decision = incremental(asked)
    record = GroupConfigsChanged("billing", {"consumer.session.timeout.ms": "50000"})
    assert decision == Decision((record,), [AlteredResource(GROUP, "billing")])
    image = apply(IMAGE, decision.records)
    assert image.group_config("billing") == {"consumer.session.timeout.ms": "50000"}
    again = decide_incremental_alter_configs(image, [asked], config=CONFIG)
    assert again == Decision.reply_only([AlteredResource(GROUP, "billing")])
    gone = decide_alter_configs(image, [change(GROUP, "billing")], config=CONFIG)
    assert apply(image, gone.records).group_configs == {}


@pytest.mark.parametrize(
    ("name", "asked", "error", "message"),
    [
        (
            "",
            ConfigChange("consumer.session.timeout.ms", "50000", SET),
            ErrorCode.INVALID_REQUEST,
            "Default group resources are not allowed.",
        ),
        ("g", ConfigChange("nope", "1", SET), ErrorCode.INVALID_CONFIG, "Unknown group config name: nope"),
        (
            "g",
            ConfigChange("consumer.session.timeout.ms", "1", APPEND),
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key consumer.session.timeout.ms because its type is not LIST.",
        ),
    ],
)
def test_what_a_group_can_not_be_given(name: str, asked: ConfigChange, error: ErrorCode, message: str) -> None:
    assert incremental(change(GROUP, name, asked)) == Decision.reply_only(
        [AlteredResource(GROUP, name, error, message)]
    )


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "orders"), (BROKER, "")])
def test_with_another_minimum_only_those_are_eligible_that_are_all_there_is(kind: int, name: str) -> None:
    led = PartitionImage((1, 2), (1,), 1, elr=(2,))
    lost = PartitionImage((1, 2), (), NO_LEADER, elr=(1, 2), last_known_elr=(1,))
    image = cluster(TopicImage("orders", topic_id(1), (led, lost), {"min.insync.replicas": "2"}), brokers=2)
    wanted = change(kind, name, ConfigChange("min.insync.replicas", "3"))
    decision = decide_incremental_alter_configs(image, [wanted], config=CONFIG)
    assert apply(image, decision.records).topics["orders"].partitions == (PartitionImage((1, 2), (1,), 1), lost)


def test_every_broker_of_the_cluster_can_be_configured() -> None:
    image = cluster(brokers=2)
    wanted = change(BROKER, "2", ConfigChange("log.retention.ms", "7"))
    decision = decide_incremental_alter_configs(image, [wanted], config=CONFIG)
    assert decision.records == (BrokerConfigsChanged("2", {"log.retention.ms": "7"}),)
    strange = decide_incremental_alter_configs(image, [change(BROKER, "3", *wanted.changes)], config=CONFIG)
    assert strange.reply[0].message == "Unexpected broker id, expected 1, but received 3"
