"""Operations on nodes as one transaction of etcd: what it compares, what it does, and why it was refused.

etcd takes each key once in a transaction. So an operation that follows another on the same node replaces it, and only
the first is compared with what is there.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moldau.store.tree.client import Change, Check, Create, Delete, Operation, Refusal, TransactionRefused

MISSING = 0  # the revision of a key that is not there


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def decoded(text: str) -> bytes:
    return base64.b64decode(text)


def transaction(operations: Sequence[Operation], key_of: Callable[[str], str], lease: int | None) -> dict[str, Any]:
    """The request; when it is refused, the revisions of all nodes come back, in the order of `paths`."""
    compared: dict[str, dict[str, Any]] = {}
    effects: dict[str, dict[str, Any]] = {}
    for operation in operations:
        compared.setdefault(operation.path, _comparison(operation, key_of(operation.path)))
        effect = _effect(operation, key_of(operation.path), lease)
        if effect is not None:
            effects[operation.path] = effect
    return {
        "compare": list(compared.values()),
        "success": list(effects.values()),
        "failure": [{"request_range": {"key": key_of(path), "keys_only": True}} for path in paths(operations)],
    }


def paths(operations: Sequence[Operation]) -> list[str]:
    return list(dict.fromkeys(operation.path for operation in operations))


def refusal(operations: Sequence[Operation], revisions: Mapping[str, int]) -> TransactionRefused | None:
    """The first operation that does not fit what is there."""
    known = dict(revisions)
    for index, operation in enumerate(operations):
        revision = known[operation.path]
        if isinstance(operation, Create):
            if revision != MISSING:
                return TransactionRefused(index, Refusal.EXISTS)
            continue
        if revision == MISSING:
            return TransactionRefused(index, Refusal.MISSING)
        if operation.version not in (None, revision):
            return TransactionRefused(index, Refusal.CHANGED)
        if isinstance(operation, Delete):
            known[operation.path] = MISSING
    return None


def _comparison(operation: Operation, key: str) -> dict[str, Any]:
    if isinstance(operation, Create):
        return {"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": str(MISSING)}
    if operation.version is None:
        return {"key": key, "target": "CREATE", "result": "GREATER", "create_revision": str(MISSING)}
    return {"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": str(operation.version)}


def _effect(operation: Operation, key: str, lease: int | None) -> dict[str, Any] | None:
    match operation:
        case Check():
            return None
        case Create(data=data, ephemeral=ephemeral):
            put = {"key": key, "value": encoded(data), "lease": str(lease or 0) if ephemeral else "0"}
            return {"request_put": put}
        case Change(data=data):
            return {"request_put": {"key": key, "value": encoded(data), "ignore_lease": True}}
        case Delete():
            return {"request_delete_range": {"key": key}}
