"""Access rules: searched, made one by one or many at once, and deleted by a filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from moldau.client.cluster import Cluster, check
from moldau.core.errors import ErrorCode
from moldau.rest.calls import Call, Json, answer
from moldau.rest.problems import bad_request
from moldau.rest.v3.resources import Resources, resources_of
from moldau.wire.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from moldau.wire.messages.create_acls import AclCreation
from moldau.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsMatchingAcl
from moldau.wire.messages.describe_acls import AclDescription, DescribeAclsResource

UNKNOWN, ANY = 0, 1
RESOURCE_TYPES = ("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
PATTERN_TYPES = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
OPERATIONS = (
    "UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT",
)  # fmt: skip
PERMISSIONS = ("UNKNOWN", "ANY", "DENY", "ALLOW")
WORDS: Mapping[str, Sequence[str]] = {
    "resource_type": RESOURCE_TYPES,
    "pattern_type": PATTERN_TYPES,
    "operation": OPERATIONS,
    "permission": PERMISSIONS,
}


class Rule(msgspec.Struct, frozen=True):
    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


class Rules(msgspec.Struct):
    data: list[Rule]


def _number(field: str, word: str) -> int:
    words = WORDS[field]
    if word.upper() not in words:
        raise bad_request(f"{field} {word!r}: expected one of {', '.join(words[1:])}")
    if word.upper() == "UNKNOWN":
        raise bad_request(f"{field} cannot be unspecified or UNKNOWN")
    return words.index(word.upper())


async def search_acls(call: Call) -> Response:
    found = await resources_of(call)
    wanted = _filter(call, "any")
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type_filter,
        resource_name_filter=wanted.resource_name_filter,
        pattern_type_filter=wanted.pattern_type_filter,
        principal_filter=wanted.principal_filter,
        host_filter=wanted.host_filter,
        operation=wanted.operation,
        permission_type=wanted.permission_type,
    )
    rules = await call.session.ask(lambda cluster: _described(cluster, request))
    return answer(_list(found, rules, call.request.url.query))


async def create_acl(call: Call) -> Response:
    found = await resources_of(call)
    rule = await call.body(Rule)
    await call.session.ask(lambda cluster: _create(cluster, [rule]))
    return answer({}, 201, location=_url(found, rule))


async def create_acls(call: Call) -> Response:
    await call.check_cluster()
    wanted = await call.body(Rules)
    await call.session.ask(lambda cluster: _create(cluster, wanted.data))
    return answer({}, 201)


async def delete_acls(call: Call) -> Response:
    found = await resources_of(call)
    wanted = _filter(call, "unknown")
    rules = await call.session.ask(lambda cluster: _delete(cluster, wanted))
    return answer({"data": [_rule(found, each) for each in rules]})


def _filter(call: Call, usual: str) -> DeleteAclsFilter:
    """An empty name stands for any."""
    numbers = {field: _number(field, call.query(field) or usual) for field in WORDS}
    return DeleteAclsFilter(
        numbers["resource_type"],
        call.query("resource_name") or None,
        numbers["pattern_type"],
        call.query("principal") or None,
        call.query("host") or None,
        numbers["operation"],
        numbers["permission"],
    )


def _described(cluster: Cluster, request: DescribeAclsRequest) -> list[Rule]:
    found = cluster.ask(request, DescribeAclsResponse)
    check(found.error_code, found.error_message)
    return [_rule_of(each, one) for each in found.resources for one in each.acls]


def _rule_of(
    resource: DescribeAclsResource | DeleteAclsMatchingAcl, acl: AclDescription | DeleteAclsMatchingAcl
) -> Rule:
    return Rule(
        _word(RESOURCE_TYPES, resource.resource_type),
        resource.resource_name,
        _word(PATTERN_TYPES, resource.pattern_type),
        acl.principal,
        acl.host,
        _word(OPERATIONS, acl.operation),
        _word(PERMISSIONS, acl.permission_type),
    )


def _word(words: Sequence[str], number: int) -> str:
    return words[number] if 0 <= number < len(words) else words[UNKNOWN]


def _create(cluster: Cluster, rules: Sequence[Rule]) -> None:
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                _number("resource_type", each.resource_type), each.resource_name,
                _number("pattern_type", each.pattern_type), each.principal, each.host,
                _number("operation", each.operation), _number("permission", each.permission),
            )
            for each in rules
        ]
    )  # fmt: skip
    made = cluster.ask_controller(
        request, CreateAclsResponse, codes=lambda answer: [each.error_code for each in answer.results]
    )
    for each in made.results:
        check(each.error_code, each.error_message)


def _delete(cluster: Cluster, wanted: DeleteAclsFilter) -> list[Rule]:
    (gone,) = cluster.ask_controller(
        DeleteAclsRequest(filters=[wanted]),
        DeleteAclsResponse,
        codes=lambda answer: [each.error_code for each in answer.filter_results],
    ).filter_results
    check(gone.error_code, gone.error_message)
    return [_rule_of(each, each) for each in gone.matching_acls if each.error_code == ErrorCode.NONE]


def _list(found: Resources, rules: Sequence[Rule], query: str) -> Json:
    data = [_rule(found, each) for each in rules]
    return found.collection("KafkaAclList", ("acls",), data, query=f"?{query}" if query else "")


def _url(found: Resources, rule: Rule) -> str:
    return f"{found.url('acls')}?{urlencode(msgspec.structs.asdict(rule))}"


def _rule(found: Resources, rule: Rule) -> Json:
    return {
        "kind": "KafkaAcl",
        "metadata": {"self": _url(found, rule)},
        "cluster_id": found.cluster_id,
        **msgspec.structs.asdict(rule),
    }
