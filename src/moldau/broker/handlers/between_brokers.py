"""The APIs that brokers use among themselves, which nobody is told of. A broker that is alone loads none of them."""

from __future__ import annotations

from moldau.broker.api import Api
from moldau.broker.handlers.allocate_producer_ids import allocate_producer_ids
from moldau.broker.handlers.alter_partition import alter_partition
from moldau.broker.handlers.assign_replicas_to_dirs import assign_replicas_to_dirs
from moldau.broker.handlers.envelope import envelope

BETWEEN_BROKERS: tuple[Api, ...] = (alter_partition, assign_replicas_to_dirs, allocate_producer_ids, envelope)
