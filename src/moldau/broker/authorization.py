"""Asking the authorizer on behalf of a request, and leaving a line in the audit log for what it denies."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Set
from typing import TYPE_CHECKING

from moldau.broker.denials import Denials, Kind
from moldau.broker.fetching.allowed_reading import read_allowed, read_allowed_of_many
from moldau.broker.producing.allowed_topics import restrict_produce
from moldau.core.limits import LARGE_REQUEST_PART
from moldau.security.acls.audit import acl_change_message, audit_message, printable
from moldau.security.acls.authorizer import Authorizer
from moldau.security.acls.bindings import Acl
from moldau.security.acls.hosts import host_address
from moldau.security.acls.vocabulary import CLUSTER_NAME, AclOperation, ResourceType, pascal_case
from moldau.wire.api import ApiKey

if TYPE_CHECKING:
    from moldau.broker.context import Context, Peer
    from moldau.security.acls.requirements import Requirement

AUDIT = logging.getLogger("moldau.audit")


class Authorization:
    """Also the way to what Fetch and Produce do only where there is an authorizer: others import none of it."""

    __slots__ = ("_denials", "authorizer")
    read = staticmethod(read_allowed)
    read_many = staticmethod(read_allowed_of_many)
    restrict_produce = staticmethod(restrict_produce)

    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer = authorizer
        self._denials = Denials(lambda line: AUDIT.info(printable(line)))

    def may(
        self,
        context: Context,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        is_audited: bool = True,
    ) -> bool:
        peer = context.peer
        if self.authorizer.authorize(peer.principal, _host_of(peer), operation, resource_type, name):
            return True
        if is_audited:
            self.note_denial(context, operation, resource_type, name)
        return False

    def denied(
        self,
        context: Context,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Iterable[str],
        *,
        is_audited: bool = True,
    ) -> Set[str]:
        """Of the usual request, which is allowed all that it names, no more than a look for each name."""
        peer = context.peer
        principal, host, authorize = peer.principal, _host_of(peer), self.authorizer.authorize
        refused = {name: None for name in names if not authorize(principal, host, operation, resource_type, name)}
        if is_audited:
            for name in refused:
                self.note_denial(context, operation, resource_type, name)
        return refused.keys()

    def takes_long(
        self, context: Context, operation: AclOperation, resource_type: ResourceType, names: Collection[str]
    ) -> bool:
        """Whether many of the names have to be judged first, or are denied, of which a line is written for each."""
        if len(names) <= LARGE_REQUEST_PART:
            return False
        principal, host, is_known = context.peer.principal, _host_of(context.peer), self.authorizer.is_known_allowed
        slow = [name for name in names if not is_known(principal, host, operation, resource_type, name)]
        return len(slow) > LARGE_REQUEST_PART

    def note_denial(self, context: Context, operation: AclOperation, resource_type: ResourceType, name: str) -> None:
        peer = context.peer
        host = _host_of(peer)
        if not self._denials.is_told(Kind(peer.principal, host, operation, resource_type)):
            return
        rule = self.authorizer.matching_rule(peer.principal, host, operation, resource_type, name)
        AUDIT.info(
            audit_message(
                rule,
                principal=peer.principal,
                host=host,
                operation=operation,
                resource_type=resource_type,
                resource_name=name,
                request=pascal_case(ApiKey(context.header.api_key)),
            )
        )

    def may_with_any(self, context: Context, operation: AclOperation, resource_type: ResourceType) -> bool:
        """With some resource of the type, whichever it is."""
        peer = context.peer
        return self.authorizer.authorize_by_resource_type(peer.principal, _host_of(peer), operation, resource_type)

    def meets(self, context: Context, needed: Requirement) -> bool:
        """What an API needs of the cluster, or something that is enough instead."""
        instead = any(
            self.may(context, each.operation, each.resource_type, CLUSTER_NAME, is_audited=False)
            for each in needed.unless
        )
        return instead or self.may(context, needed.operation, needed.resource_type, CLUSTER_NAME)

    def operations(self, context: Context, resource_type: ResourceType, name: str) -> int:
        """The bit set of all that the client may do with a resource."""
        peer = context.peer
        return self.authorizer.authorized_operations(peer.principal, _host_of(peer), resource_type, name)

    def note_changes(self, context: Context, verb: str, acls: Iterable[Acl]) -> None:
        """ACLs that a client has created or deleted."""
        peer = context.peer
        for acl in acls:
            AUDIT.info(acl_change_message(acl, verb, principal=peer.principal, host=_host_of(peer)))


def _host_of(peer: Peer) -> str:
    host = peer.host
    return host_address(host) if ":" in host else host
