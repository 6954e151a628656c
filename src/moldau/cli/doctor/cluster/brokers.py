"""Brokers: whether they are reached where they say, agree on the controller, run one release, and stand in racks."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.cli.doctor.cluster.facts import Broker, ClusterFacts
from moldau.cli.doctor.findings import Finding, Severity, counted, listed, ok
from moldau.client.addresses import addresses_of

LOOPBACK = ("localhost", "127.", "::1", "ip6-localhost")
FAR_MS = 50.0
KRAFT = "kraft.version"  # only Apache Kafka's own quorum has it: its brokers name any broker as the controller
FIXED = frozenset({KRAFT})  # a quorum with static voters stays at its level


def is_loopback(host: str) -> bool:
    return host.lower().startswith(LOOPBACK)


def check_reachable(facts: ClusterFacts) -> Iterator[Finding]:
    asked_locally = all(is_loopback(host) for host, _ in addresses_of(facts.servers))
    for broker in facts.brokers.values():
        if broker.failure is not None:
            yield _unreachable(broker)
        elif is_loopback(broker.host) and not asked_locally:
            yield _local_only(broker, facts.servers)
        else:
            yield _round_trip(broker)


def _unreachable(broker: Broker) -> Finding:
    return Finding(
        Severity.PROBLEM,
        "broker-reachable",
        f"broker {broker.id}",
        f"{broker.address} does not answer: {broker.failure}",
        "clients learn this address from the cluster, and connect to nothing else for the partitions that it leads",
        (
            f"advertised.listeners of broker {broker.id}: an address that clients reach",
            f"moldau broker-api-versions --bootstrap-server {broker.address}",
        ),
    )


def _local_only(broker: Broker, servers: str) -> Finding:
    return Finding(
        Severity.WARNING,
        "advertised-listener",
        f"broker {broker.id}",
        f"it advertises {broker.address} to whoever asks at {servers}",
        "clients on other machines connect to themselves instead; that this one answers means that you are on its"
        " machine or forward its port",
        (f"advertised.listeners=PLAINTEXT://BROKER-{broker.id}.EXAMPLE:{broker.port} and a restart of the broker",),
    )


def _round_trip(broker: Broker) -> Finding:
    took = broker.round_trip_ms or 0.0
    subject, seen = f"broker {broker.id}", f"{broker.address} answers in {took:.1f} ms"
    if took <= FAR_MS:
        return ok("broker-reachable", subject, seen)
    return Finding(
        Severity.NOTE,
        "broker-reachable",
        subject,
        seen,
        "each request waits that long: clients at this distance need larger batches, and more under way at once",
        ("linger.ms=50 and batch.size=1000000 for producers, fetch.min.bytes=100000 for consumers",),
    )


def check_missing_brokers(facts: ClusterFacts) -> Iterator[Finding]:
    missing = sorted(facts.replica_ids - facts.brokers.keys())
    for broker_id in missing:
        held = sum(broker_id in each.replicas for each in facts.partitions())
        yield Finding(
            Severity.PROBLEM,
            "broker-missing",
            f"broker {broker_id}",
            f"it holds replicas of {counted(held, 'partition')} and is not in the cluster",
            "until it is back these partitions have a replica less, and new records are not copied to it",
            (
                f"start broker {broker_id} again, with its data or an empty log directory: it catches up",
                "or, if it is gone for good, give its replicas to others: moldau reassign-partitions --generate"
                f" --topics-to-move-json-file topics.json --broker-list {_ids(facts)}",
            ),
        )
    if not missing:
        yield ok("broker-missing", "brokers", f"{counted(len(facts.brokers), 'broker')}, none is missing")


def _ids(facts: ClusterFacts) -> str:
    return ",".join(map(str, sorted(facts.brokers)))


def check_controller(facts: ClusterFacts) -> Iterator[Finding]:
    reached = [each for each in facts.brokers.values() if each.failure is None]
    if not reached:
        return
    told = {each.id: each.controller_id for each in reached}
    is_kraft = any(KRAFT in each.supported for each in reached)
    leader = facts.quorum_leader
    why = "without an active controller no leader is elected, no topic created and no configuration changed"
    do = ("moldau metadata-quorum describe --status", "the log of each broker, for elections of the controller")
    if (leader is not None and leader < 0) or (leader is None and not is_kraft and set(told.values()) == {-1}):
        yield Finding(Severity.PROBLEM, "controller", "controller", "nobody is the active controller", why, do)
        return
    if not is_kraft and len(set(told.values())) > 1:
        views = ", ".join(f"broker {broker} names {named}" for broker, named in sorted(told.items()))
        yield Finding(
            Severity.PROBLEM,
            "controller",
            "controller",
            f"brokers do not agree: {views}",
            "one of them does not hear of what changes; for seconds after an election that is normal",
            ("moldau doctor --cluster     # once more", *do),
        )
        return
    active = leader if leader is not None else next(iter(told.values()))
    yield ok("controller", "controller", f"{active} is the active controller")


def check_releases(facts: ClusterFacts) -> Iterator[Finding]:
    reached = [each for each in facts.brokers.values() if each.failure is None]
    if not reached:
        return
    kinds: dict[object, list[int]] = {}
    for broker in reached:
        kinds.setdefault((broker.apis, tuple(sorted(broker.supported.items()))), []).append(broker.id)
    if len(kinds) > 1:
        groups = "; ".join(f"brokers {listed(ids)}" for ids in kinds.values())
        yield Finding(
            Severity.WARNING,
            "releases",
            "brokers",
            f"they answer different versions of the protocol: {groups}",
            "an upgrade is not finished: clients that use what the newer ones offer fail at the older ones",
            ("finish the upgrade: restart the older ones with the release of the others",),
        )
    else:
        yield ok("releases", "brokers", "all answer the same versions of the protocol")
    yield from _features(reached)


def _features(reached: list[Broker]) -> Iterator[Finding]:
    finalized = reached[0].finalized
    for name in sorted(set.intersection(*(set(each.supported) for each in reached)) - FIXED):
        highest = min(each.supported[name][1] for each in reached)
        level = finalized.get(name, 0)
        if level >= highest:
            yield ok("features", f"feature {name}", f"level {level}")
            continue
        yield Finding(
            Severity.NOTE,
            "features",
            f"feature {name}",
            f"level {level}, all brokers know {highest}",
            "after an upgrade a feature stays at its old level until somebody says that there is no way back",
            (f"moldau features upgrade --feature {name}={highest}",),
        )


def check_racks(facts: ClusterFacts) -> Iterator[Finding]:
    racks = {each.id: each.rack for each in facts.brokers.values()}
    without = sorted(broker for broker, rack in racks.items() if rack is None)
    if len(without) == len(racks):
        yield ok("racks", "racks", "no broker has one")
        return
    if without:
        yield Finding(
            Severity.WARNING,
            "racks",
            "racks",
            f"brokers {listed(without)} have none, others do",
            "replicas are spread over racks only when every broker has one; with some it is refused, or left to chance",
            tuple(f"broker.rack=… in the configuration of broker {each}" for each in without[:3]),
        )
        return
    together = [
        str(each.place)
        for each in facts.partitions()
        if len(each.replicas) > 1
        and len(set(racks.values())) > 1
        and len({racks.get(replica) for replica in each.replicas}) == 1
    ]
    if not together:
        yield ok("racks", "racks", f"{len(set(racks.values()))} racks, and no partition with all replicas in one")
        return
    yield Finding(
        Severity.WARNING,
        "racks",
        "racks",
        f"{counted(len(together), 'partition')} with all replicas in one rack: {listed(together)}",
        "the loss of that rack takes every copy",
        (f"moldau reassign-partitions --generate --topics-to-move-json-file topics.json --broker-list {_ids(facts)}",),
    )
