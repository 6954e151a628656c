"""Who leads a partition and where that broker is: told by Produce and Fetch to a client that asked another one."""

from __future__ import annotations

from msgspec import Struct

from moldau.wire.schema import Int32


class LeaderIdAndEpoch(Struct, frozen=True, gc=False):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class NodeEndpoint(Struct, gc=False):
    node_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    rack: str | None = None
