"""Groups and transactions that this broker coordinates."""

from __future__ import annotations

from collections import Counter

from moldau.broker.context import Services
from moldau.coordinator.long_work import in_slices
from moldau.core.exposition import Exposition
from moldau.groups.classic.group import State
from moldau.groups.consumer.group import ConsumerState
from moldau.transactions.states import State as TransactionState

MANAGER = "kafka_coordinator_group_groupmetadatamanager_"
METRICS = "kafka_server_group_coordinator_metrics_"


async def write_groups(services: Services, out: Exposition) -> None:
    classic: Counter[State] = Counter()
    consumer: Counter[ConsumerState] = Counter()
    offsets = 0
    for shard in services.groups.loaded():
        async for group in in_slices([*shard.groups.values()], services.long_work):
            classic[group.state] += 1
        async for consumer_group in in_slices([*shard.consumer_groups.values()], services.long_work):
            consumer[consumer_group.state] += 1
        async for topics in in_slices([*shard.offsets.values()], services.long_work):
            offsets += sum(map(len, topics.values()))
    help_text = "Groups that this broker coordinates."
    out.add(f"{MANAGER}numgroups", help_text, {}, classic.total() + consumer.total())
    out.add(f"{MANAGER}numoffsets", "Offsets that these groups have committed.", {}, offsets)
    for state in State:
        name = f"{MANAGER}numgroups{state.value.lower()}"
        out.add(name, f"Groups of the classic protocol that are {state.value}.", {}, classic[state])
    for protocol, count in (("classic", classic.total()), ("consumer", consumer.total())):
        out.add(f"{METRICS}group_count", "Groups by protocol.", {"protocol": protocol}, count)
    for each in ConsumerState:
        help_text = "Groups of the consumer protocol by state."
        out.add(f"{METRICS}consumer_group_count", help_text, {"state": each.value}, consumer[each])


async def write_transactions(services: Services, out: Exposition) -> None:
    states: Counter[TransactionState] = Counter()
    for shard in services.transactions.loaded():
        async for transaction in in_slices([*shard.transactions.values()], services.long_work):
            states[transaction.state] += 1
    for state in TransactionState:
        if state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE):  # which are never stored
            help_text = "Transactional ids that this broker coordinates, by state."
            out.add("moldau_transactional_ids", help_text, {"state": state.label}, states[state])
