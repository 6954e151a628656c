"""DescribeConfigs: v1 tells the source and the synonyms of a value, v3 its type and documentation when asked.

Topics, brokers, broker loggers, groups and client metrics.
"""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.config_resources import config_denial
from moldau.broker.context import Context
from moldau.broker.loggers import levels
from moldau.broker.requests.answers import refuse_repetition
from moldau.broker.rights import DESCRIBE_CONFIGS
from moldau.controller.settings.configs import ResourceType, parse_broker_id
from moldau.core.config.definitions import ConfigSource
from moldau.core.config.describe import (
    UNKNOWN_TYPE,
    ConfigEntry,
    describe_broker_config,
    describe_broker_defaults,
    describe_client_metrics_config,
    describe_group_config,
    describe_topic_config,
)
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.topic_names import topic_name_problem
from moldau.wire.api import ApiKey
from moldau.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_RESOURCE_TYPES = frozenset(ResourceType)


@api(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest, versions=(1, 4), parts=(("resources", "results"),))
def describe_configs(request: DescribeConfigsRequest, context: Context) -> DescribeConfigsResponse:
    refuse_repetition([(resource.resource_type, resource.resource_name) for resource in request.resources])
    if any(resource.resource_type not in _RESOURCE_TYPES for resource in request.resources):
        # An unknown kind of resource spoils the whole request, as it does for Kafka.
        unknown = ApiError(ErrorCode.INVALID_REQUEST)
        return DescribeConfigsResponse(results=[_failed(resource, unknown) for resource in request.resources])
    return DescribeConfigsResponse(results=[_describe(resource, request, context) for resource in request.resources])


def _describe(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, context: Context
) -> DescribeConfigsResult:
    try:
        _refuse_denied(resource, context)
        entries = _entries(resource, context)
    except ApiError as wrong:
        return _failed(resource, wrong)
    wanted = set(resource.configuration_keys or ())
    return DescribeConfigsResult(
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_shape(entry, request) for entry in entries if not wanted or entry.name in wanted],
    )


def _refuse_denied(resource: DescribeConfigsResource, context: Context) -> None:
    denial = config_denial(context, DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name)
    if denial is not None:
        raise ApiError(denial, denial.message)


def _entries(resource: DescribeConfigsResource, context: Context) -> list[ConfigEntry]:
    kind, name = resource.resource_type, resource.resource_name
    match kind:
        case ResourceType.TOPIC:
            return _of_topic(name, context)
        case ResourceType.BROKER:
            return _of_broker(name, context)
        case ResourceType.BROKER_LOGGER:
            return _of_loggers(name, context)
        case ResourceType.GROUP:
            return _of_group(name, context)
        case _:
            return _of_client_metrics(name, context)


def _of_topic(name: str, context: Context) -> list[ConfigEntry]:
    problem = topic_name_problem(name)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    topic = context.services.controller.image.topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    return describe_topic_config(topic.configs, context.services.config.layers)


def _of_broker(name: str, context: Context) -> list[ConfigEntry]:
    if name == "":
        return describe_broker_defaults(context.services.config)
    ours = context.services.broker_id
    if parse_broker_id("Broker", name) != ours:
        message = f"Unexpected broker id, expected {ours} or empty string, but received {name}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
    return describe_broker_config(context.services.config)


def _of_group(name: str, context: Context) -> list[ConfigEntry]:
    if name == "":
        raise ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    services = context.services
    return describe_group_config(services.controller.image.group_config(name), services.config.layers)


def _of_client_metrics(name: str, context: Context) -> list[ConfigEntry]:
    if name == "":
        raise ApiError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    return describe_client_metrics_config(context.services.controller.image.client_metrics_config(name))


def _of_loggers(name: str, context: Context) -> list[ConfigEntry]:
    if name == "":
        raise ApiError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    ours = context.services.broker_id
    if parse_broker_id("Broker", name) != ours:
        message = f"Unexpected broker id, expected {ours} but received {name}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
    return [_of_logger(logger, level) for logger, level in levels().items()]


def _of_logger(name: str, level: str) -> ConfigEntry:
    return ConfigEntry(
        name=name,
        value=level,
        source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
        read_only=False,
        sensitive=False,
        type=UNKNOWN_TYPE,
        synonyms=(),
        documentation="",
    )


def _shape(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    # A logger has no documentation, and Kafka says so even to those who did not ask.
    is_documented = request.include_documentation or entry.source is ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source) for each in synonyms],
        config_type=entry.type,
        documentation=entry.documentation if is_documented else None,
    )


def _failed(resource: DescribeConfigsResource, wrong: ApiError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=wrong.code,
        error_message=wrong.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
