"""Kafka's words and numbers."""

from __future__ import annotations

import pytest

from moldau.security.acls.vocabulary import (
    SUPPORTED_OPERATIONS,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
    bit_set,
    from_code,
    pascal_case,
)


@pytest.mark.parametrize("vocabulary", [ResourceType, PatternType, AclOperation, PermissionType])
def test_numbers_of_a_later_version_are_unknown(
    vocabulary: type[ResourceType | PatternType | AclOperation | PermissionType],
) -> None:
    assert [from_code(vocabulary, each) for each in vocabulary] == list(vocabulary)
    assert from_code(vocabulary, 99).name == from_code(vocabulary, -1).name == "UNKNOWN"


def test_every_resource_supports_operations() -> None:
    assert set(SUPPORTED_OPERATIONS) == set(ResourceType) - {ResourceType.UNKNOWN, ResourceType.ANY}
    supported = {operation for operations in SUPPORTED_OPERATIONS.values() for operation in operations}
    assert supported == set(AclOperation) - {AclOperation.UNKNOWN, AclOperation.ANY, AclOperation.ALL}


def test_operations_are_bits() -> None:
    assert bit_set(AclOperation.READ, AclOperation.DESCRIBE) == 0b1_0000_1000


def test_words_are_spelled_as_tools_spell_them() -> None:
    assert [pascal_case(each) for each in (ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID)] == [
        "Topic",
        "TransactionalId",
    ]
