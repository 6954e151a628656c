"""From the words of a command line to ACLs, and to what ACLs are looked for by."""

from __future__ import annotations

import pytest

from moldau.cli.acls.acting import EVERYTHING
from moldau.cli.acls.command import parse
from moldau.cli.acls.words import Acl, Filter, acls, filters
from moldau.cli.failures import UsageError
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType


def made(words: str) -> list[str]:
    return [str(each) for each in acls(parse(["add", *words.split()]))]


def sought(words: str, pattern: PatternType = PatternType.MATCH) -> list[Filter]:
    return filters(parse(["list", *words.split()]), pattern=pattern)


def test_one_acl_for_each_principal_operation_resource_and_host() -> None:
    assert made("--principal alice --principal Group:ops --operation read --operation Describe --topic t") == [
        "allow User:alice read on topic t",
        "allow Group:ops read on topic t",
        "allow User:alice describe on topic t",
        "allow Group:ops describe on topic t",
    ]
    assert made("--deny --principal User:* --host 10.0.0.7 --operation all --group g --prefixed") == [
        "deny User:* all on prefixed group g from 10.0.0.7"
    ]


def test_what_a_producer_and_a_consumer_need_as_kafka_acls_has_it() -> None:
    assert made("--principal a --producer --topic t --transactional-id x") == [
        "allow User:a write on topic t",
        "allow User:a describe on topic t",
        "allow User:a create on topic t",
        "allow User:a write on transactional-id x",
        "allow User:a describe on transactional-id x",
    ]
    assert made("--principal a --consumer --topic t --group g") == [
        "allow User:a read on topic t",
        "allow User:a describe on topic t",
        "allow User:a read on group g",
    ]


def test_the_cluster_has_its_whole_name() -> None:
    wanted = parse(["add", "--principal", "a", "--operation", "alter-configs", "--cluster", "--prefixed"])
    assert acls(wanted) == [
        Acl(
            ResourceType.CLUSTER,
            "kafka-cluster",
            PatternType.LITERAL,
            "User:a",
            "*",
            AclOperation.ALTER_CONFIGS,
            PermissionType.ALLOW,
        )
    ]


def test_nothing_said_is_everything() -> None:
    assert sought("") == [EVERYTHING]


def test_filters() -> None:
    (of_topic,) = sought("--topic t --principal a --deny")
    assert of_topic == Filter(
        ResourceType.TOPIC, "t", PatternType.MATCH, "User:a", None, AclOperation.ANY, PermissionType.DENY
    )
    (by_prefix,) = sought("--topic t --prefixed", PatternType.LITERAL)
    assert by_prefix.pattern is PatternType.PREFIXED
    assert len(sought("--principal a --consumer --topic t --group g")) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--operation read", "expected what it is about: --topic, --group, --cluster, --transactional-id or others"),
        ("--topic t", "expected what may be done with it: --operation, --producer or --consumer"),
        ("--group g --operation write", "there is no write of a group; expected read, delete, describe, "),
        ("--producer", "--producer and --consumer need a --topic"),
        ("--consumer --topic t", "--consumer needs a --group"),
        ("--deny --producer --topic t", "--producer and --consumer allow; deny what is meant by --operation"),
    ],
)
def test_what_is_wrong(words: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        made(f"--principal a {words}")
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("words", ["--host example.org", "--host 10.0.0.0/8", "--principal user:alice"])
def test_what_would_never_be_met_is_not_made_but_found(words: str) -> None:
    with pytest.raises(UsageError, match=words.split()[1]):
        made(f"--principal a --topic t --operation read {words}")
    assert sought(words)


def test_an_address_is_written_as_brokers_compare_it() -> None:
    (acl,) = made("--principal a --topic t --operation read --host ::1")
    assert acl.endswith("from 0:0:0:0:0:0:0:1")
    (acl,) = made("--principal a --topic t --operation read --host *")
    assert "from" not in acl
