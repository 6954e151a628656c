"""`moldau.run(brokers=3)`, and the cluster that it returns: brokers in processes of their own that share metadata."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from moldau.embedded.broker import EmbeddedBroker, start_command
from moldau.embedded.members import first_broker_id, members
from moldau.embedded.overrides import as_property, check_overrides
from moldau.embedded.process import START_S_MAX, BrokerFailed, BrokerProcess
from moldau.embedded.requests import Seen, create_topic, describe
from moldau.embedded.security import ClientSettings, secured

if TYPE_CHECKING:
    from moldau.embedded.services import Service, Services

LOOK_S = 0.05  # between two questions about the cluster
SERVICES = {"zookeeper.connect", "etcd.connect"}
OF_EACH = {
    "listeners": "use `host` and `port`",
    "log.dirs": "use `data_dir`",
    "log.dir": "use `data_dir`",
    "broker.id": "`node.id` is that of the first",
}


def run_cluster(
    brokers: int,
    *,
    overrides: Mapping[str, object] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    properties: str | os.PathLike[str] | None = None,
    timeout_s: float = START_S_MAX,
    secure: bool = False,
    program: str = "moldau",
) -> EmbeddedCluster:
    """Start brokers and return once all of them know each other; see `moldau.run`. `program` is what runs each."""
    _check(brokers, overrides or {})
    scratch = Path(tempfile.mkdtemp(prefix="moldau-"))
    data = scratch / "data" if data_dir is None else Path(data_dir)
    from moldau.log.directories.meta_properties import UnusableDirectory  # who runs one broker loads nothing of it

    try:
        known = first_broker_id([data])
        first = int(str((overrides or {}).get("node.id", 0))) if known is None else known
        started: dict[int, EmbeddedBroker] = {}
        security = secured(data, host=host) if secure else None
        has_service = properties is not None or not SERVICES.isdisjoint(overrides or {})
        for index, member in enumerate(
            members([data.absolute()], range(first, first + brokers), has_service=has_service)
        ):
            listener = _listener(host, port and port + index, secure=secure)
            command = [*start_command(properties, program=program), *(security.arguments if security else [])]
            # The last of two values for one key counts.
            command += [*_overriding(overrides or {}), *member.arguments, "--override", listener]
            own = scratch / f"process-{member.broker_id}"
            own.mkdir()
            process = BrokerProcess([*command, "--scratch", os.fspath(scratch)], scratch=own)
            login = security.login if security else None
            started[member.broker_id] = EmbeddedBroker(process, data_dir=member.folder, login=login)
    except UnusableDirectory as wrong:
        shutil.rmtree(scratch, ignore_errors=True)
        raise BrokerFailed(str(wrong)) from wrong
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    cluster = EmbeddedCluster(started, data_dir=data, scratch=scratch)
    try:
        cluster.start(timeout_s=timeout_s)
    except BaseException:
        cluster.close()
        raise
    return cluster


def _overriding(overrides: Mapping[str, object]) -> list[str]:
    return [word for key, value in overrides.items() for word in ("--override", f"{key}={as_property(value)}")]


def _check(brokers: int, overrides: Mapping[str, object]) -> None:
    if not isinstance(brokers, int) or brokers < 1:
        raise ValueError(f"brokers={brokers!r}: expected 1 or more")
    check_overrides(overrides)
    for key in OF_EACH.keys() & overrides.keys():
        raise ValueError(f"{key!r} is each broker's own in a cluster; {OF_EACH[key]}")


class EmbeddedCluster:
    """Brokers that `run` started; they end when the process that started them ends, however that happens."""

    def __init__(self, brokers: Mapping[int, EmbeddedBroker], *, data_dir: Path, scratch: Path) -> None:
        self.data_dir = data_dir
        self.scratch = scratch
        """A folder that goes with the cluster, also when the process that started it is killed."""
        self._brokers = brokers
        self._beside: list[Services] = []
        self.close = weakref.finalize(self, _close, tuple(brokers.values()), self._beside, scratch, os.getpid())

    @property
    def brokers(self) -> Mapping[int, EmbeddedBroker]:
        """All of them by their ids, also those that do not run."""
        return self._brokers

    @property
    def bootstrap_servers(self) -> str:
        """What clients call `bootstrap.servers`."""
        return ",".join(broker.bootstrap_servers for broker in self._brokers.values())

    @property
    def clients(self) -> ClientSettings:
        """The settings that clients need, as those of a single broker."""
        return ClientSettings(next(iter(self._brokers.values())).login, lambda: self.bootstrap_servers)

    @property
    def registry(self) -> Service:
        """The schema registry of `run(registry=True)`, with its `url` and `settings`."""
        return self.services["registry"]

    @property
    def rest(self) -> Service:
        """The REST proxy of `run(rest=True)`, with its `url`."""
        return self.services["rest"]

    @property
    def services(self) -> Services:
        """What stands beside the brokers, and goes with them."""
        if not self._beside:
            from moldau.embedded.services import Services

            self._beside.append(Services(self.scratch))
        return self._beside[0]

    def start(self, *, timeout_s: float = START_S_MAX) -> None:
        """All brokers at once; done when each knows the others."""
        deadline_s = time.monotonic() + timeout_s
        with ThreadPoolExecutor(len(self._brokers)) as threads:
            list(threads.map(lambda broker: broker.restart(timeout_s=timeout_s), self._brokers.values()))
        self._await_members(self._brokers.keys(), deadline_s)

    def kill(self, broker_id: int) -> None:
        """End a broker at once, as kill -9 and a crash do."""
        self._broker(broker_id).kill()

    def stop(self, broker_id: int | None = None) -> None:
        """End a broker as SIGTERM does, or all of them, one after the other."""
        ids = [broker_id] if broker_id is not None else sorted(self._brokers, reverse=True)
        for each in ids:
            self._broker(each).stop()

    def restart(self, broker_id: int, *, timeout_s: float = START_S_MAX) -> None:
        """Start a broker again on the same port; done when all that run know it. One that runs is stopped."""
        deadline_s = time.monotonic() + timeout_s
        self._broker(broker_id).restart(timeout_s=timeout_s)
        self._await_members({broker_id}, deadline_s)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """Create a topic, and wait until every broker knows it; without numbers it has the brokers' defaults.

        Raises RequestFailed.
        """
        create_topic(
            self._any().address,
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            config=config or {},
            login=self.clients.login,
        )
        deadline_s = time.monotonic() + START_S_MAX
        self._await_all(lambda seen: bool(seen.leaders), f"topic {name}", topic=name, deadline_s=deadline_s)

    def leader_of(self, topic: str, partition: int = 0, *, timeout_s: float = START_S_MAX) -> int:
        """The broker that leads a partition; while nobody does, that is waited for. Raises TimeoutError."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            leader = self.seen(topic).leaders.get(partition, -1)
            if leader in self._brokers and self._brokers[leader].is_running:
                return leader
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"nobody leads {topic}-{partition} within {timeout_s:g} s")
            time.sleep(LOOK_S)

    @property
    def controller(self) -> int:
        """The broker that controls, as one of those that run knows it; -1 while there is none."""
        return self.seen().controller_id

    def seen(self, topic: str | None = None) -> Seen:
        """The cluster as a broker that runs describes it."""
        return describe(self._any().address, topic, self.clients.login)

    def output(self) -> str:
        """What all brokers have printed so far."""
        return "\n".join(f"broker {each}:\n{broker.output()}" for each, broker in self._brokers.items())

    def _await_members(self, ids: Collection[int], deadline_s: float) -> None:
        self._await_all(lambda seen: set(ids) <= seen.broker_ids, "each other", topic=None, deadline_s=deadline_s)

    def _await_all(self, knows: Callable[[Seen], bool], what: str, *, topic: str | None, deadline_s: float) -> None:
        """Until every broker that runs describes the cluster so."""
        for broker in self._brokers.values():
            while broker.is_running and not knows(describe(broker.address, topic, broker.login)):
                if time.monotonic() > deadline_s:
                    raise BrokerFailed(f"not all brokers know {what}:\n{self.output()}")
                time.sleep(LOOK_S)

    def _broker(self, broker_id: int) -> EmbeddedBroker:
        if broker_id not in self._brokers:
            raise ValueError(f"there is no broker {broker_id}; there are {', '.join(map(str, self._brokers))}")
        return self._brokers[broker_id]

    def _any(self) -> EmbeddedBroker:
        for broker in self._brokers.values():
            if broker.is_running:
                return broker
        raise BrokerFailed("no broker of the cluster runs")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        states = ", ".join(f"{each}: {broker!r}" for each, broker in self._brokers.items())
        return f"EmbeddedCluster({states})"


def _listener(host: str, port: int, *, secure: bool) -> str:
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return f"listeners={'SASL_SSL' if secure else 'PLAINTEXT'}://{address}"


def _close(brokers: tuple[EmbeddedBroker, ...], beside: list[Services], scratch: Path, owner_pid: int) -> None:
    """End all and remove what was theirs; only the process that made them may, not one forked from it."""
    if os.getpid() != owner_pid:
        return
    for each in beside:
        each.end()
    for broker in reversed(brokers):
        broker.dispose()
    shutil.rmtree(scratch, ignore_errors=True)
