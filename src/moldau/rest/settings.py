"""How the proxy is set up, with the limits that keep one client from costing the others anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MIB = 1 << 20


class Authentication(StrEnum):
    NONE = "NONE"
    BASIC = "BASIC"  # users of the proxy; the cluster sees the proxy's own login
    PASSTHROUGH = "PASSTHROUGH"  # users of the cluster, who log in there with what they say here


@dataclass(frozen=True, slots=True, kw_only=True)
class RestSettings:
    client: Mapping[str, str]
    """How the cluster is reached, by librdkafka's names."""
    producer: Mapping[str, str] = field(default_factory=dict)
    consumer: Mapping[str, str] = field(default_factory=dict)
    registry_url: str | None = None
    registry: Mapping[str, str] = field(default_factory=dict)
    authentication: Authentication = Authentication.NONE
    id: str = ""
    timeout_s: float = 30.0
    resource_name_authority: str = ""
    advertised_url: str | None = None
    """Stands before the paths in answers, where clients reach the proxy by another name than it sees."""
    is_v2: bool = True
    is_v3: bool = True

    value_bytes_max: int = 10 * MIB  # of one record of a stream
    batch_entries_max: int = 10  # as in Confluent's proxy
    in_flight_records_max: int = 500  # of one stream, until the cluster has answered
    in_flight_bytes_max: int = 16 * MIB
    stream_ms_max: int = 24 * 60 * 60 * 1_000

    instance_timeout_ms: int = 300_000
    instances_max: int = 500  # each has threads and connections of its own
    instances_per_user_max: int = 100
    consumer_threads: int = 50
    request_timeout_ms: int = 1_000
    request_bytes_max: int = 64 * MIB
    fetch_min_bytes: int = -1
    prefetch_kbytes_max: int = 8_192  # of records that nobody asked for yet, for each instance
    stream_prefetch_kbytes_max: int = 2_048  # the same for each stream, of which most wait for their clients
    stream_batch_bytes_max: int = MIB  # of records that are rendered at once; a larger record comes alone

    streams_max: int = 100
    streams_per_user_max: int = 20
    heartbeat_ms: int = 15_000
    sessions_max: int = 200  # users of the cluster with connections at one time
    session_idle_ms: int = 300_000
    login_checked_s: float = 300.0  # after which the cluster is asked again whether a user's password still holds
