"""The rights that handlers ask their context for, by the short names that documentation of Kafka has for them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from moldau.broker.authorized_operations import ON_CLUSTER, ON_GROUP, ON_TOPIC
from moldau.core.errors import ErrorCode
from moldau.security.acls import vocabulary
from moldau.security.acls.vocabulary import AclOperation, ResourceType

if TYPE_CHECKING:
    from moldau.broker.context import Context

READ, WRITE = AclOperation.READ, AclOperation.WRITE
CREATE, DELETE = AclOperation.CREATE, AclOperation.DELETE
DESCRIBE, ALTER = AclOperation.DESCRIBE, AclOperation.ALTER
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
CLUSTER_ACTION, IDEMPOTENT_WRITE = AclOperation.CLUSTER_ACTION, AclOperation.IDEMPOTENT_WRITE
CREATE_TOKENS, DESCRIBE_TOKENS = AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
DELEGATION_TOKEN, USER = ResourceType.DELEGATION_TOKEN, ResourceType.USER
CLUSTER_NAME = vocabulary.CLUSTER_NAME

NOTHING_ALLOWED = 0

AUTHORIZATION_ERRORS: Mapping[ResourceType, ErrorCode] = MappingProxyType(
    {
        TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
        CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


def operations_on_topic(context: Context, name: str) -> int:
    authorization = context.services.authorization
    return ON_TOPIC if authorization is None else authorization.operations(context, TOPIC, name)


def operations_on_group(context: Context, group_id: str) -> int:
    authorization = context.services.authorization
    return ON_GROUP if authorization is None else authorization.operations(context, GROUP, group_id)


def operations_on_cluster(context: Context) -> int:
    """Nothing for a client that may not describe the cluster."""
    authorization = context.services.authorization
    if authorization is None:
        return ON_CLUSTER
    if not context.may(DESCRIBE, CLUSTER, CLUSTER_NAME):
        return NOTHING_ALLOWED
    return authorization.operations(context, CLUSTER, CLUSTER_NAME)


def may_create_topics(context: Context) -> bool:
    """Whichever they are. Who may not can still be allowed to create some."""
    return context.may(CREATE, CLUSTER, CLUSTER_NAME, is_audited=False)


def may_write_anything(context: Context) -> bool:
    """What an idempotent producer needs, which has no other name than a number."""
    authorization = context.services.authorization
    return (
        authorization is None
        or context.may(IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME, is_audited=False)
        or authorization.may_with_any(context, WRITE, TOPIC)
    )
