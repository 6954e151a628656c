"""Codes and messages are Kafka's."""

from __future__ import annotations

import pytest

from moldau.controller.image import ClusterImage
from moldau.controller.machine import apply, snapshot_records
from moldau.controller.records import AclCreated, AclDeleted, UnknownRecord, decode_records, encode_records
from moldau.controller.settings.acls import (
    COMPARISONS_MAX,
    TOO_MANY,
    CreatedAcl,
    DeletedAcls,
    decide_create_acls,
    decide_delete_acls,
    matching_acls,
    portions,
)
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import AclId
from moldau.core.limits import ACLS_PER_REQUEST_MAX
from moldau.security.acls.bindings import Acl, AclFilter
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType
from tests.controller.clusters import cluster, counting_ids, topic, topic_id
from tests.security.acls.bindings import allow, deny

READ, WRITE = AclOperation.READ, AclOperation.WRITE
ALLOWED, DENIED, OF_BOB = allow(READ), deny(WRITE), allow(READ, who="User:bob")
EXISTED, CREATED = CreatedAcl(), CreatedAcl(is_new=True)


def acl_id(number: int) -> AclId:
    return AclId(topic_id(number))


def create(image: ClusterImage, *acls: Acl, first: int = 1) -> Decision[list[CreatedAcl]]:
    return decide_create_acls(image, acls, new_id=counting_ids(first))


def with_acls(*acls: Acl) -> ClusterImage:
    image = cluster(topic("orders"))
    return apply(image, create(image, *acls).records)


def test_acls_are_created() -> None:
    decision = create(cluster(), ALLOWED, DENIED)
    assert decision.records == (AclCreated(acl_id(1), ALLOWED), AclCreated(acl_id(2), DENIED))
    assert decision.reply == [CREATED, CREATED]
    image = apply(cluster(), decision.records)
    assert image.acls == {acl_id(1): ALLOWED, acl_id(2): DENIED}
    assert image.acl_ids == {ALLOWED: acl_id(1), DENIED: acl_id(2)}


def test_an_acl_that_exists_is_no_error() -> None:
    decision = create(with_acls(ALLOWED), ALLOWED, DENIED, DENIED, first=7)
    assert decision.records == (AclCreated(acl_id(7), DENIED),)
    assert decision.reply == [EXISTED, CREATED, EXISTED]


def test_one_refused_acl_does_not_hold_up_another() -> None:
    decision = create(cluster(), allow(READ, ""), ALLOWED)
    refused = CreatedAcl(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")
    assert decision.reply == [refused, CREATED]
    assert decision.records == (AclCreated(acl_id(1), ALLOWED),)


def test_acls_are_deleted_by_filters() -> None:
    image = with_acls(ALLOWED, DENIED, OF_BOB)
    decision = decide_delete_acls(image, [AclFilter(principal="User:alice"), AclFilter(resource_name="other")])
    assert decision.records == (AclDeleted(acl_id(1)), AclDeleted(acl_id(2)))
    assert decision.reply == [DeletedAcls(acls=(ALLOWED, DENIED)), DeletedAcls()]
    image = apply(image, decision.records)
    assert image.acls == {acl_id(3): OF_BOB}
    assert image.acl_ids == {OF_BOB: acl_id(3)}


def test_what_two_filters_find_is_told_twice_and_deleted_once() -> None:
    decision = decide_delete_acls(
        with_acls(ALLOWED, DENIED), [AclFilter(operation=READ), AclFilter(), AclFilter(operation=READ)]
    )
    assert decision.records == (AclDeleted(acl_id(1)), AclDeleted(acl_id(2)))
    assert [each.acls for each in decision.reply] == [(ALLOWED,), (ALLOWED, DENIED), (ALLOWED,)]


def test_filters_find_what_earlier_ones_of_their_request_have_deleted() -> None:
    exact = AclFilter(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:bob", "*", READ, PermissionType.ALLOW)
    filters = [AclFilter(operation=READ), exact, AclFilter()]
    decision = decide_delete_acls(with_acls(DENIED), filters, gone=[ALLOWED, OF_BOB])
    assert decision.records == (AclDeleted(acl_id(1)),)
    assert [each.acls for each in decision.reply] == [(ALLOWED, OF_BOB), (OF_BOB,), (ALLOWED, OF_BOB, DENIED)]


def test_an_acl_that_is_created_again_meanwhile_is_deleted_again() -> None:
    decision = decide_delete_acls(with_acls(ALLOWED), [AclFilter()], gone=[ALLOWED])
    assert decision.reply == [DeletedAcls(acls=(ALLOWED,))]
    assert decision.records == (AclDeleted(acl_id(1)),)


def test_filters_are_decided_so_many_at_a_time_that_none_takes_long() -> None:
    wide = [AclFilter(principal=f"User:{number}") for number in range(1_000)]
    exact = [
        AclFilter(ResourceType.TOPIC, "t", PatternType.LITERAL, each.principal, "*", READ, PermissionType.ALLOW)
        for each in wide
    ]
    counts = [len(some) for some in portions(wide, 10_000)]
    assert (max(counts), sum(counts)) == (3, 1_000)
    assert [len(some) for some in portions(exact, 10_000)] == [1_000], "these are looked up"
    assert [len(some) for some in portions(wide, 2 * COMPARISONS_MAX)] == [1] * 1_000
    assert list(portions([], 10_000)) == []


def test_an_exact_filter_deletes_its_acl_and_no_other() -> None:
    image = with_acls(ALLOWED, OF_BOB)
    exact = AclFilter(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:bob", "*", READ, PermissionType.ALLOW)
    assert decide_delete_acls(image, [exact]) == Decision((AclDeleted(acl_id(2)),), [DeletedAcls(acls=(OF_BOB,))])
    assert decide_delete_acls(with_acls(ALLOWED), [exact]) == Decision.reply_only([DeletedAcls()])


def test_one_refused_filter_does_not_hold_up_another() -> None:
    decision = decide_delete_acls(with_acls(ALLOWED), [AclFilter(ResourceType.UNKNOWN), AclFilter()])
    refused = DeletedAcls(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    assert decision.reply == [refused, DeletedAcls(acls=(ALLOWED,))]
    assert decision.records == (AclDeleted(acl_id(1)),)


def test_acls_are_described_by_a_filter() -> None:
    image = with_acls(ALLOWED, DENIED, allow(READ, "ord", pattern=PatternType.PREFIXED))
    assert matching_acls(image, AclFilter(permission=PermissionType.DENY)) == [DENIED]
    assert len(matching_acls(image, AclFilter(resource_name="orders", pattern_type=PatternType.MATCH))) == 3
    assert len(matching_acls(image, AclFilter())) == 3


def test_one_request_changes_a_bounded_number_of_acls() -> None:
    many = [allow(READ, f"topic-{number}") for number in range(ACLS_PER_REQUEST_MAX + 1)]
    decision = create(cluster(), *many)
    assert decision.records == ()
    assert set(decision.reply) == {CreatedAcl(ErrorCode.UNKNOWN_SERVER_ERROR, TOO_MANY)}
    image = apply(with_acls(DENIED), create(cluster(), *many[:-1], first=2).records)
    refused = DeletedAcls(ErrorCode.UNKNOWN_SERVER_ERROR, TOO_MANY)
    deletion = decide_delete_acls(image, [AclFilter(), AclFilter(operation=WRITE)])
    assert deletion.reply == [refused, DeletedAcls(acls=(DENIED,))]
    assert deletion.records == (AclDeleted(acl_id(1)),)


def test_acls_are_in_snapshots_and_records_in_bytes() -> None:
    image = with_acls(ALLOWED, DENIED, allow(READ, "ä" * 100, pattern=PatternType.PREFIXED))
    image = apply(image, [AclDeleted(acl_id(1))])
    records = decode_records(encode_records([*snapshot_records(image)]))
    assert apply(ClusterImage(), records) == image
    deleted = [AclDeleted(acl_id(2))]
    assert decode_records(encode_records(deleted)) == deleted


def test_metadata_without_acls_is_what_it_was_before_there_were_any() -> None:
    """An older version can read it, and what it wrote has no ACLs."""
    image = cluster(topic("orders"))
    assert not [record for record in snapshot_records(image) if isinstance(record, AclCreated | AclDeleted)]
    written = b"\x91\x92\xa7cluster\xa4here"
    assert apply(ClusterImage(), decode_records(written)) == ClusterImage(cluster_id="here")


def test_the_bytes_of_an_acl_stay_readable() -> None:
    written = b"\x91\x93\xa3acl\xc4\x10" + bytes(15) + b"\x01\x97\x02\xa6orders\x03\xaaUser:alice\xa1*\x03\x03"
    assert encode_records([AclCreated(acl_id(1), ALLOWED)]) == written
    assert decode_records(written) == [AclCreated(acl_id(1), ALLOWED)]


def test_an_acl_of_a_later_version_is_not_taken_for_another() -> None:
    """A rule that this version does not know may deny something: it can't be left out."""
    later = encode_records([AclCreated(acl_id(1), ALLOWED)]).replace(b"\xa1*\x03\x03", b"\xa1*\x63\x03")
    with pytest.raises(UnknownRecord):
        decode_records(later)
