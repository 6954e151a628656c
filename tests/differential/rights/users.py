"""Who asks. Nobody logs in: each user is another address of the loopback, which is what its ACLs are for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

ADMIN = "127.0.0.1"  # brokers come from there, too
NETWORK = "127.0.7"

SEEN, SECRET, ABSENT = "rights-seen", "rights-secret", "rights-absent"
STAFF, OTHERS, NOBODY = "rights-staff", "rights-others", "rights-nobody"
PAYMENTS, REFUNDS = "rights-payments", "rights-refunds"
AUTOMATIC = "rights-s-automatic"
CLUSTER_NAME = "kafka-cluster"

TYPES = {"topic": 2, "group": 3, "cluster": 4, "txn": 5, "token": 6, "user": 7}
OPERATIONS = {
    "all": 2, "read": 3, "write": 4, "create": 5, "delete": 6, "alter": 7, "describe": 8, "cluster_action": 9,
    "describe_configs": 10, "alter_configs": 11, "idempotent_write": 12,
}  # fmt: skip
DENY, ALLOW = 2, 3
LITERAL, PREFIXED = 3, 4


class User(NamedTuple):
    name: str
    host: str
    acls: tuple[dict[str, Any], ...]


def acl(kind: str, resource: str, operation: str, host: str, *, deny: bool = False, prefixed: bool = False) -> Any:
    return {
        "resource_type": TYPES[kind],
        "resource_name": resource,
        "resource_pattern_type": PREFIXED if prefixed else LITERAL,
        "principal": "User:ANONYMOUS",
        "host": host,
        "operation": OPERATIONS[operation],
        "permission_type": DENY if deny else ALLOW,
    }


def parsed(text: str, host: str) -> Any:
    """`topic:seen read`, with `!` in front of what is denied and `*` behind a prefix."""
    deny, resource_and_operation = text.startswith("!"), text.lstrip("!")
    resource, operation = resource_and_operation.split()
    kind, _, name = resource.partition(":")
    prefixed = len(name) > 1 and name.endswith("*")
    name = CLUSTER_NAME if kind == "cluster" else name.removesuffix("*") if prefixed else name
    return acl(kind, name, operation, host, deny=deny, prefixed=prefixed)


EVERYTHING = "topic:* all, group:* all, cluster: all, txn:* all, token:* all, user:* all"
SETS = {
    "nobody": "",
    "everything": EVERYTHING,
    **{
        f"topic {operation}": f"topic:{SEEN} {operation}"
        for operation in ("read", "write", "create", "delete", "alter", "describe", "describe_configs", "alter_configs")
    },
    "topic all": f"topic:{SEEN} all",
    "any topic read": "topic:* read",
    "any topic describe": "topic:* describe",
    "any topic write": "topic:* write",
    "any topic create": "topic:* create",
    "topics by prefix": "topic:rights-s* all",
    "topics but one": f"topic:* all, !topic:{SECRET} all",
    "topics but to describe one": f"topic:* all, !topic:{SEEN} describe",
    "topics but to read one": f"topic:* all, !topic:{SEEN} read",
    **{
        f"group {operation}": f"group:{STAFF} {operation}"
        for operation in ("read", "describe", "delete", "describe_configs", "alter_configs", "all")
    },
    "any group describe": "group:* describe",
    "groups but one": f"group:* all, !group:{OTHERS} all",
    **{f"txn {operation}": f"txn:{PAYMENTS} {operation}" for operation in ("write", "describe", "all")},
    "any txn write": "txn:* write",
    **{
        f"cluster {operation}": f"cluster: {operation}"
        for operation in (
            "create", "delete", "alter", "describe", "cluster_action", "describe_configs", "alter_configs",
            "idempotent_write", "all",
        )
    },
    "consumer": f"topic:{SEEN} read, group:{STAFF} read",
    "producer": f"topic:{SEEN} write, txn:{PAYMENTS} write",
    "copier": f"topic:{SEEN} all, txn:{PAYMENTS} write, group:{STAFF} read",
    "admin without a right": f"{EVERYTHING}, !cluster: alter, !cluster: describe",
}  # fmt: skip


def users() -> Iterator[User]:
    for number, (name, rights) in enumerate(SETS.items(), start=1):
        host = f"{NETWORK}.{number}"
        acls = tuple(parsed(each.strip(), host) for each in rights.split(",") if each.strip())
        yield User(name, host, acls)


def admin_acls() -> list[Any]:
    return [parsed(each.strip(), ADMIN) for each in EVERYTHING.split(",")]
