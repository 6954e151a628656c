"""ACLs come and go. Checks, their order and their words are Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import Struct

from moldau.controller.image import ClusterImage, Draft
from moldau.controller.records import AclCreated, AclDeleted
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import AclId, random_uuid
from moldau.core.limits import ACLS_PER_REQUEST_MAX
from moldau.security.acls.bindings import Acl, AclFilter, acl_problem, filter_problem

FILTERS_MAX = 2_000  # in one decision, however few ACLs there are
COMPARISONS_MAX = 30_000  # of filters with ACLs in one decision, which take the loop three milliseconds
TOO_MANY = "Unable to perform excessively large batch operation."


class CreatedAcl(Struct, frozen=True):
    """What became of one. An ACL that is there already is no error, and not new."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    is_new: bool = False


class DeletedAcls(Struct, frozen=True):
    """What one filter found, also if another filter of the request found it too."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    acls: tuple[Acl, ...] = ()


def decide_create_acls(
    image: ClusterImage, acls: Sequence[Acl], *, new_id: Callable[[], bytes] = random_uuid
) -> Decision[list[CreatedAcl]]:
    """One reply per ACL, in the order of the request; refused ACLs don't hold up the others."""
    created: dict[Acl, AclCreated] = {}
    replies: list[CreatedAcl] = []
    for acl in acls:
        problem = acl_problem(acl)
        is_new = problem is None and acl not in image.acl_ids and acl not in created
        if is_new:
            created[acl] = AclCreated(AclId(new_id()), acl)
        error = ErrorCode.NONE if problem is None else ErrorCode.INVALID_REQUEST
        replies.append(CreatedAcl(error, problem, is_new))
    if len(created) > ACLS_PER_REQUEST_MAX:
        return Decision.reply_only([CreatedAcl(ErrorCode.UNKNOWN_SERVER_ERROR, TOO_MANY)] * len(acls))
    return Decision(records=tuple(created.values()), reply=replies)


def decide_delete_acls(
    image: ClusterImage, filters: Sequence[AclFilter], *, gone: Collection[Acl] = frozenset()
) -> Decision[list[DeletedAcls]]:
    """One reply per filter, in the order of the request; refused filters don't hold up the others.

    `gone` is what earlier filters of the same request have deleted, which these find too.
    """
    deleted: dict[AclId, AclDeleted] = {}
    replies: list[DeletedAcls] = []
    for wanted in filters:
        problem = filter_problem(wanted)
        if problem is not None:
            replies.append(DeletedAcls(ErrorCode.INVALID_REQUEST, problem))
            continue
        found = dict(_matching(image, wanted))
        records = {acl_id: AclDeleted(acl_id) for acl_id in found if acl_id not in deleted}
        if len(gone) + len(deleted) + len(records) > ACLS_PER_REQUEST_MAX:
            replies.append(DeletedAcls(ErrorCode.UNKNOWN_SERVER_ERROR, TOO_MANY))
            continue
        deleted |= records
        replies.append(DeletedAcls(acls=(*_gone(image, wanted, gone), *found.values())))
    return Decision(records=tuple(deleted.values()), reply=replies)


def portions(filters: Sequence[AclFilter], acls: int) -> Iterator[list[AclFilter]]:
    """The filters of a request that are decided at a time, so that none of so many ACLs are compared for long."""
    some: list[AclFilter] = []
    comparisons = 0
    for each in filters:
        count = acls if each.only() is None else 1
        if some and (comparisons + count > COMPARISONS_MAX or len(some) == FILTERS_MAX):
            yield some
            some, comparisons = [], 0
        some.append(each)
        comparisons += count
    if some:
        yield some


def matching_acls(image: ClusterImage, wanted: AclFilter) -> list[Acl]:
    return [acl for _, acl in _matching(image, wanted)]


def _matching(image: ClusterImage, wanted: AclFilter) -> Iterator[tuple[AclId, Acl]]:
    only = wanted.only()
    if only is None:
        return ((acl_id, acl) for acl_id, acl in image.acls.items() if wanted.matches(acl))
    return iter([(image.acl_ids[only], only)] if only in image.acl_ids else [])


def _gone(image: ClusterImage, wanted: AclFilter, gone: Collection[Acl]) -> list[Acl]:
    """What a filter would have found. An ACL that somebody created again is found as that."""
    only = wanted.only()
    found = [each for each in gone if wanted.matches(each)] if only is None else [only] if only in gone else []
    return [each for each in found if each not in image.acl_ids]


def apply_acl_created(draft: Draft, record: AclCreated) -> None:
    assert record.acl not in draft.image.acl_ids, "an ACL is created once"
    draft.put_acl(record.id, record.acl)


def apply_acl_deleted(draft: Draft, record: AclDeleted) -> None:
    draft.remove_acl(record.id)
