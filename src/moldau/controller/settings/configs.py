"""Configurations that are changed while the cluster runs: of topics, brokers, groups and client metrics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import replace

from moldau.controller.image import ClusterImage, Draft
from moldau.controller.partitions.min_isr import MIN_ISR
from moldau.controller.partitions.states import Refusal, clear_elrs, without_elr
from moldau.controller.records import (
    BrokerConfigsChanged,
    ClientMetricsConfigsChanged,
    GroupConfigsChanged,
    TopicConfigsChanged,
)
from moldau.core.config.broker import BROKER_CONFIGS, DYNAMIC_BROKER_CONFIGS, THROTTLES, BrokerConfig, listener_key
from moldau.core.config.client_metrics import InvalidSubscription, validate_client_metrics
from moldau.core.config.definitions import ConfigDef, ConfigError, ConfigType, format_value
from moldau.core.config.dynamic import check_change, is_store_key, refuse_for_all_brokers
from moldau.core.config.group import GROUP_CONFIGS, validate_group_overrides
from moldau.core.config.settings import refuse_unsupported
from moldau.core.config.topic import TOPIC_CONFIGS, validate_topic_overrides
from moldau.core.decision import Decision
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.limits import CLIENT_METRICS_SUBSCRIPTIONS_MAX
from moldau.core.topic_names import topic_name_problem


class ResourceType(IntEnum):
    """The numbers are those of the protocol."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class AlterConfigOp(IntEnum):
    """The numbers are those of the protocol."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_OPERATIONS = frozenset(AlterConfigOp)


class ConfigChange(Struct, frozen=True):
    name: str
    value: str | None
    operation: int = AlterConfigOp.SET


class ResourceChange(Struct, frozen=True):
    """A resource and what shall change about it; the type is a plain number because anything may come in."""

    type: int
    name: str
    changes: Sequence[ConfigChange]


class AlteredResource(Struct, frozen=True):
    type: int
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


ConfigRecord = TopicConfigsChanged | BrokerConfigsChanged | GroupConfigsChanged | ClientMetricsConfigsChanged
_ALTERED_HERE = (ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP, ResourceType.CLIENT_METRICS)


def decide_incremental_alter_configs(
    image: ClusterImage, resources: Sequence[ResourceChange], *, config: BrokerConfig, validate_only: bool = False
) -> Decision[list[AlteredResource]]:
    """Each resource changes as a whole or not at all; keys that are not named keep their values."""
    return _decide(image, resources, config, validate_only=validate_only, incremental=True)


def decide_alter_configs(
    image: ClusterImage, resources: Sequence[ResourceChange], *, config: BrokerConfig, validate_only: bool = False
) -> Decision[list[AlteredResource]]:
    """The older way: each resource gets exactly the keys that are named, and loses the others."""
    return _decide(image, resources, config, validate_only=validate_only, incremental=False)


def _decide(
    image: ClusterImage,
    resources: Sequence[ResourceChange],
    config: BrokerConfig,
    *,
    validate_only: bool,
    incremental: bool,
) -> Decision[list[AlteredResource]]:
    times_named = Counter((each.type, each.name) for each in resources)
    records: list[ConfigRecord] = []
    replies: list[AlteredResource] = []
    for resource in resources:
        outcome: list[ConfigRecord] | Refusal
        if times_named[resource.type, resource.name] > 1:
            outcome = Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        else:
            outcome = _refuse_request(resource, incremental) or _alter(image, resource, config, incremental)
        if isinstance(outcome, Refusal):
            replies.append(AlteredResource(resource.type, resource.name, outcome.error, outcome.message))
            continue
        records += outcome
        replies.append(AlteredResource(resource.type, resource.name))
    return Decision(records=() if validate_only else tuple(records), reply=replies)


def refuse_changes(changes: Sequence[ConfigChange]) -> Refusal | None:
    """What is wrong whatever the resource is."""
    names = [each.name for each in changes]
    if len(set(names)) != len(names):
        return Refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [each.name for each in changes if each.value is None and each.operation != AlterConfigOp.DELETE]
    if nulls:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    return None


def _refuse_request(resource: ResourceChange, incremental: bool) -> Refusal | None:
    """What is wrong before anything is looked up."""
    refusal = refuse_changes(resource.changes)
    if refusal is not None:
        return refusal
    if incremental and resource.type == ResourceType.BROKER_LOGGER:
        kind = ResourceType(resource.type).name
        return Refusal(ErrorCode.INVALID_REQUEST, f"Configurations of {kind} resources are not supported yet")
    if resource.type not in _ALTERED_HERE:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.type}")
    unknown = [each.operation for each in resource.changes if each.operation not in _OPERATIONS]
    if unknown:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown operations type {unknown[0]}")
    return None


def _alter(
    image: ClusterImage, resource: ResourceChange, config: BrokerConfig, incremental: bool
) -> list[ConfigRecord] | Refusal:
    if resource.type == ResourceType.TOPIC:
        return _alter_topic(image, resource, config, incremental)
    if resource.type == ResourceType.GROUP:
        return _alter_group(image, resource, config, incremental)
    if resource.type == ResourceType.CLIENT_METRICS:
        return _alter_client_metrics(image, resource, incremental)
    return _alter_broker(image, resource, config, incremental)


def _alter_topic(
    image: ClusterImage, resource: ResourceChange, config: BrokerConfig, incremental: bool
) -> list[ConfigRecord] | Refusal:
    topic = image.topics.get(resource.name)
    now: Mapping[str, str] = {} if topic is None else topic.configs
    values = _changed_values(now, resource.changes, TOPIC_CONFIGS, incremental=incremental)
    if isinstance(values, ConfigChange):
        return _refuse_list_operation(values)
    if not resource.name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    problem = topic_name_problem(resource.name)
    if problem is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    try:
        validate_topic_overrides(values, config.topic_defaults)
    except ConfigError as wrong:
        return Refusal(ErrorCode.INVALID_CONFIG, str(wrong))
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist.")
    changes = _difference(now, values)
    return [TopicConfigsChanged(topic.id, changes)] if changes else []


def _refuse_list_operation(change: ConfigChange) -> Refusal:
    verb = AlterConfigOp(change.operation).name
    return Refusal(ErrorCode.INVALID_CONFIG, f"Can't {verb} to key {change.name} because its type is not LIST.")


def _alter_group(
    image: ClusterImage, resource: ResourceChange, config: BrokerConfig, incremental: bool
) -> list[ConfigRecord] | Refusal:
    now = image.group_config(resource.name)
    values = _changed_values(now, resource.changes, GROUP_CONFIGS, incremental=incremental)
    if isinstance(values, ConfigChange):
        return _refuse_list_operation(values)
    if not resource.name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    try:
        validate_group_overrides(values, config)
    except ConfigError as wrong:
        return Refusal(ErrorCode.INVALID_CONFIG, str(wrong))
    changes = _difference(now, values)
    return [GroupConfigsChanged(resource.name, changes)] if changes else []


def _alter_client_metrics(
    image: ClusterImage, resource: ResourceChange, incremental: bool
) -> list[ConfigRecord] | Refusal:
    now = image.client_metrics_config(resource.name)
    # Kafka knows no types of these keys where it appends to lists, so that none is a list there.
    values = _changed_values(now, resource.changes, {}, incremental=incremental)
    if isinstance(values, ConfigChange):
        return _refuse_list_operation(values)
    if not resource.name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    try:
        validate_client_metrics(values)
    except InvalidSubscription as wrong:
        return Refusal(ErrorCode.INVALID_REQUEST, str(wrong))
    except ConfigError as wrong:
        return Refusal(ErrorCode.INVALID_CONFIG, str(wrong))
    if not now and values and len(image.client_metrics_configs) >= CLIENT_METRICS_SUBSCRIPTIONS_MAX:
        message = f"There are {CLIENT_METRICS_SUBSCRIPTIONS_MAX} client metrics subscriptions, the most allowed"
        return Refusal(ErrorCode.POLICY_VIOLATION, message)
    changes = _difference(now, values)
    return [ClientMetricsConfigsChanged(resource.name, changes)] if changes else []


def _alter_broker(
    image: ClusterImage, resource: ResourceChange, config: BrokerConfig, incremental: bool
) -> list[ConfigRecord] | Refusal:
    refusal = _refuse_broker_name(resource.name, image, config.node_id)
    if refusal is not None:
        return refusal
    broker = str(int(resource.name)) if resource.name else ""
    now = image.broker_config(broker)
    values = _changed_values(now, resource.changes, BROKER_CONFIGS, incremental=incremental)
    if isinstance(values, ConfigChange):
        if values.name not in BROKER_CONFIGS:
            return Refusal(ErrorCode.INVALID_CONFIG, f"Unknown config name: {values.name}")
        verb = AlterConfigOp(values.operation).name.lower()
        message = f"Config value {verb} is not allowed for config key: {values.name}"
        return Refusal(ErrorCode.INVALID_CONFIG, message)
    problem = _broker_values_problem(values, resource.name, config)
    if problem is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, problem)
    changes = _difference(now, values)
    return [BrokerConfigsChanged(broker, changes)] if changes else []


def config_after(image: ClusterImage, resource: ResourceChange, config: BrokerConfig) -> BrokerConfig | None:
    """A broker's configuration with incremental changes of it; None for changes that are refused. ConfigError."""
    values = _changed_values(image.broker_config(resource.name), resource.changes, BROKER_CONFIGS, incremental=True)
    if refuse_changes(resource.changes) is not None or isinstance(values, ConfigChange):
        return None
    return config.with_dynamic(config.layers.dynamic_default, values)


def _refuse_broker_name(name: str, image: ClusterImage, node_id: int) -> Refusal | None:
    if not name:
        return None
    try:
        broker_id = parse_broker_id("Node", name)
    except ApiError as wrong:
        return Refusal(wrong.code, wrong.message)
    if broker_id != node_id and broker_id not in image.brokers:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id}, but received {name}")
    return None


def parse_broker_id(what: str, text: str) -> int:
    """The number that names a broker; `what` begins the complaint about any other text."""
    if not _BROKER_ID.match(text):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{what} id must be an integer, but it is: {text}")
    return int(text)


_BROKER_ID = re.compile(r"[+-]?[0-9]{1,10}\Z")  # as Java's Integer.parseInt takes it
_UNSUPPORTED_PREFIXES = ("sasl.", "listener.name.")


def _broker_values_problem(values: Mapping[str, str], name: str, config: BrokerConfig) -> str | None:
    """Keys that no one knows are kept, as Kafka does, for plugins and newer versions may know them."""
    fixed = sorted(
        each
        for each in values
        if (each in BROKER_CONFIGS and each not in DYNAMIC_BROKER_CONFIGS)
        or (each.startswith(_UNSUPPORTED_PREFIXES) and listener_key(each) is None and not is_store_key(each))
    )
    if fixed:
        return f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
    secure = sorted(each for each in values if each.startswith("ssl."))
    if secure:
        return (
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"[{', '.join(secure)}]"
        )
    only_here = None if name else refuse_for_all_brokers(values)
    if only_here is not None:
        return only_here
    try:
        for each in THROTTLES.keys() & values.keys():
            THROTTLES[each].parse(values[each])
        refuse_unsupported(values)
        default, own = (config.layers.dynamic_default, values) if name else (values, config.layers.dynamic)
        check_change(config, config.with_dynamic(default, own))
    except ConfigError as wrong:
        return str(wrong)
    return None


def _changed_values(
    now: Mapping[str, str],
    changes: Sequence[ConfigChange],
    definitions: Mapping[str, ConfigDef],
    *,
    incremental: bool,
) -> dict[str, str] | ConfigChange:
    """All values after the changes, or the change that treats something else as a list."""
    values = dict(now) if incremental else {}
    delete, set_, append = int(AlterConfigOp.DELETE), int(AlterConfigOp.SET), int(AlterConfigOp.APPEND)
    for change in changes:
        if change.operation == delete:
            values.pop(change.name, None)
            continue
        assert change.value is not None, "only a deletion comes without a value"
        if change.operation == set_:
            values[change.name] = change.value
            continue
        definition = definitions.get(change.name)
        if definition is None or definition.type is not ConfigType.LIST:
            return change
        before = values.get(change.name, format_value(definition.default) or "")
        items = [each for each in before.split(",") if each]
        named = change.value.split(",")
        if change.operation == append:
            items += [each for each in dict.fromkeys(named) if each not in items]
        else:
            items = [each for each in items if each not in named]
        values[change.name] = ",".join(items)
    return values


def _difference(now: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str | None]:
    gone: dict[str, str | None] = {name: None for name in now if name not in values}
    return {**gone, **{name: value for name, value in values.items() if now.get(name) != value}}


def apply_topic_configs_changed(draft: Draft, record: TopicConfigsChanged) -> None:
    topic = draft.image.topic_by_id(record.topic_id)
    assert topic is not None, "configurations change on topics that exist"
    changed = replace(topic, configs=_merged(topic.configs, record.changes))
    draft.put_topic(without_elr(changed) if MIN_ISR in record.changes else changed)


def apply_broker_configs_changed(draft: Draft, record: BrokerConfigsChanged) -> None:
    values = _merged(draft.image.broker_config(record.broker), record.changes)
    _keep(draft.broker_configs(), record.broker, values)
    if MIN_ISR in record.changes:
        clear_elrs(draft)


def apply_group_configs_changed(draft: Draft, record: GroupConfigsChanged) -> None:
    values = _merged(draft.image.group_config(record.group_id), record.changes)
    _keep(draft.group_configs(), record.group_id, values)


def apply_client_metrics_configs_changed(draft: Draft, record: ClientMetricsConfigsChanged) -> None:
    values = _merged(draft.image.client_metrics_config(record.name), record.changes)
    _keep(draft.client_metrics_configs(), record.name, values)


def _keep(by_name: dict[str, Mapping[str, str]], name: str, values: Mapping[str, str]) -> None:
    if values:
        by_name[name] = values
    else:
        by_name.pop(name, None)


def _merged(now: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**now, **changes}
    return {name: value for name, value in merged.items() if value is not None}
