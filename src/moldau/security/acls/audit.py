"""Lines for the audit log, as Kafka's kafka.authorizer.logger writes them, so that whatever reads those reads ours."""

from __future__ import annotations

from moldau.security.acls.authorizer import MatchingRule
from moldau.security.acls.bindings import Acl
from moldau.security.acls.vocabulary import AclOperation, ResourceType, pascal_case
from moldau.security.principals import Principal

NAME_CHARS_MAX = 256  # more than a topic's name can have
CUT_MARK = "..."


def audit_message(
    rule: MatchingRule,
    *,
    principal: Principal,
    host: str,
    operation: AclOperation,
    resource_type: ResourceType,
    resource_name: str,
    request: str,
    references: int = 1,
) -> str:
    """`request` is the name of the API, `references` how often its request names the resource.

    What a client wrote is escaped: a name with a line break must not make a line of its own. Nor is a line much longer
    than a topic's name can be: groups and transactional ids have up to 32,767 bytes, each of which may be escaped.
    """
    verdict = "Allowed" if rule.is_allowed else "Denied"
    line = (
        f"Principal = {principal} is {verdict} operation = {operation.name} from host = {host} "
        f"on resource = {pascal_case(resource_type)}:LITERAL:{_shown(resource_name)} for request = {request} "
        f"with resourceRefCount = {references} based on rule {rule}"
    )
    return printable(line)


def acl_change_message(acl: Acl, verb: str, *, principal: Principal, host: str) -> str:
    """That somebody has created or deleted an ACL."""
    return printable(f"Principal = {principal} {verb} ACL = {acl} from host = {host}")


def _shown(name: str) -> str:
    shown = printable(name[: NAME_CHARS_MAX + 1])
    return shown if len(shown) <= NAME_CHARS_MAX else shown[:NAME_CHARS_MAX] + CUT_MARK


def printable(line: str) -> str:
    """One line, whatever is in it."""
    return line if line.isprintable() else "".join(each if each.isprintable() else ascii(each)[1:-1] for each in line)
