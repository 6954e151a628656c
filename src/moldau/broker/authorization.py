"""Asking the authorizer on behalf of a request, and leaving a line in the audit log for what it denies."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from moldau.security.acls.audit import audit_message
from moldau.security.acls.authorizer import Authorizer
from moldau.security.acls.vocabulary import AclOperation, ResourceType
from moldau.wire.api import ApiKey

if TYPE_CHECKING:
    from moldau.broker.context import Context

AUDIT = logging.getLogger("moldau.audit")


class Authorization:
    __slots__ = ("authorizer",)

    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer = authorizer

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
        if self.authorizer.authorize(peer.principal, peer.host, operation, resource_type, name):
            return True
        if is_audited:
            rule = self.authorizer.matching_rule(peer.principal, peer.host, operation, resource_type, name)
            AUDIT.info(
                audit_message(
                    rule,
                    principal=peer.principal,
                    host=peer.host,
                    operation=operation,
                    resource_type=resource_type,
                    resource_name=name,
                    request=ApiKey(context.header.api_key).name,
                )
            )
        return False
