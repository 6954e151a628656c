"""DescribeAcls, CreateAcls and DeleteAcls without an authorizer."""

from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from moldau.wire.messages.create_acls import AclCreation, AclCreationResult
from moldau.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsFilterResult
from tests.broker.handlers.wire import Wire

ANY, TOPIC, READ, ALLOW = 1, 2, 3, 3
DISABLED = ErrorCode.SECURITY_DISABLED


@pytest.mark.parametrize("version", [1, 2, 3])
def test_there_are_no_rules_to_describe(wire: Wire, version: int) -> None:
    everything = DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY)
    message = "No Authorizer is configured on the broker"
    found = wire.ask(everything, version, DescribeAclsResponse)
    assert found == DescribeAclsResponse(error_code=DISABLED, error_message=message)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_no_rule_is_made(wire: Wire, name: str, version: int) -> None:
    rules = [AclCreation(TOPIC, name, 3, f"User:{who}", "*", READ, ALLOW) for who in ("anna", "bert")]
    refused = AclCreationResult(DISABLED, "No Authorizer is configured.")
    made = wire.ask(CreateAclsRequest(creations=rules), version, CreateAclsResponse)
    assert made == CreateAclsResponse(results=[refused, refused])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_no_rule_is_deleted(wire: Wire, name: str, version: int) -> None:
    filters = [DeleteAclsFilter(TOPIC, name, 3, None, None, ANY, ANY)]
    gone = wire.ask(DeleteAclsRequest(filters=filters), version, DeleteAclsResponse)
    refused = DeleteAclsFilterResult(DISABLED, "No Authorizer is configured.")
    assert gone == DeleteAclsResponse(filter_results=[refused])
