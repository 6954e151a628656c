"""The words of access control, with Kafka's codes: what an ACL is about, what it permits, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import TypeVar

UNKNOWN_CODE = 0  # in each of the vocabularies: what a newer version may have sent

WILDCARD = "*"  # a literal resource name, or a host, that stands for every one
WILDCARD_PRINCIPAL = "User:*"
CLUSTER_NAME = "kafka-cluster"  # the only resource of the type CLUSTER


class ResourceType(IntEnum):
    """What ACLs protect. The resources that have configurations are others, with other numbers."""

    UNKNOWN = UNKNOWN_CODE
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    UNKNOWN = UNKNOWN_CODE
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    UNKNOWN = UNKNOWN_CODE
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class PermissionType(IntEnum):
    UNKNOWN = UNKNOWN_CODE
    ANY = 1
    DENY = 2
    ALLOW = 3


Code = TypeVar("Code", bound=IntEnum)


def from_code(vocabulary: type[Code], code: int) -> Code:
    """The word for a number of a request, UNKNOWN if there is none."""
    try:
        return vocabulary(code)
    except ValueError:
        return vocabulary(UNKNOWN_CODE)


# What a client can be told that it may do. Kafka's brokers take ACLs for other operations too; its tools don't.
SUPPORTED_OPERATIONS: Mapping[ResourceType, tuple[AclOperation, ...]] = MappingProxyType(
    {
        ResourceType.TOPIC: (
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.CREATE,
            AclOperation.DELETE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        ),
        ResourceType.GROUP: (
            AclOperation.READ,
            AclOperation.DELETE,
            AclOperation.DESCRIBE,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        ),
        ResourceType.CLUSTER: (
            AclOperation.CREATE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
            AclOperation.CLUSTER_ACTION,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
            AclOperation.IDEMPOTENT_WRITE,
        ),
        ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.TWO_PHASE_COMMIT),
        ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
        ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
    }
)

# Who may do one of these may do the other too. Only for what is allowed: a denied READ leaves DESCRIBE alone.
IMPLIED_BY: Mapping[AclOperation, frozenset[AclOperation]] = MappingProxyType(
    {
        AclOperation.DESCRIBE: frozenset(
            (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER)
        ),
        AclOperation.DESCRIBE_CONFIGS: frozenset((AclOperation.ALTER_CONFIGS,)),
    }
)


def bit_set(*operations: AclOperation) -> int:
    """As answers carry operations: bit N stands for the operation number N."""
    return sum(1 << operation for operation in operations)


def pascal_case(word: IntEnum) -> str:
    """TransactionalId for TRANSACTIONAL_ID, as Kafka's audit lines and tools spell the words."""
    return word.name.title().replace("_", "")
