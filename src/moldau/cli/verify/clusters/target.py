"""A cluster as scenarios know it: who its brokers are, how it is asked, and what can be done to a broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from moldau.cli.verify.clusters.hooks import Hooks
from moldau.cli.wire import cluster_of
from moldau.client.cluster import Cluster, Node

ANSWER_S = 2.0  # a broker that is paused takes connections and answers nothing


def address(node: Node) -> str:
    return f"[{node.host}]:{node.port}" if ":" in node.host else f"{node.host}:{node.port}"


class Target(Protocol):
    @property
    def settings(self) -> Mapping[str, str]:
        """Of clients, with all brokers as their servers."""

    @property
    def nodes(self) -> Mapping[int, Node]: ...

    @property
    def is_ours(self) -> bool: ...

    def need(self, *actions: str) -> None:
        """Raises Skipped if one of the hooks' actions can't be done."""

    def does_itself(self, action: str) -> bool:
        """Whether nobody has to be asked for it."""

    def kill(self, broker: int) -> None: ...

    def start(self, broker: int) -> None:
        """Returns when it was started; what it has to catch up with may take longer."""

    def restart(self, broker: int) -> None:
        """Cleanly."""

    def pause(self, broker: int) -> None: ...

    def resume(self, broker: int) -> None: ...

    def slow_disk(self, broker: int, delay_ms: int) -> None: ...

    def heal_disk(self, broker: int) -> None: ...


class GivenCluster:
    def __init__(self, settings: Mapping[str, str], nodes: Mapping[int, Node], hooks: Hooks) -> None:
        self.settings = {**settings, "bootstrap.servers": ",".join(map(address, nodes.values()))}
        self.nodes = nodes
        self.is_ours = False
        self._hooks = hooks

    def need(self, *actions: str) -> None:
        self._hooks.need(*actions)

    def does_itself(self, action: str) -> bool:
        return action in self._hooks.commands

    def kill(self, broker: int) -> None:
        self._hooks.do("stop-broker", broker)

    def start(self, broker: int) -> None:
        self._hooks.do("start-broker", broker)

    def restart(self, broker: int) -> None:
        self._hooks.do("restart-broker", broker)

    def pause(self, broker: int) -> None:
        self._hooks.do("pause-broker", broker)

    def resume(self, broker: int) -> None:
        self._hooks.do("resume-broker", broker)

    def slow_disk(self, broker: int, delay_ms: int) -> None:
        del delay_ms  # how slow a slow disk is, the command knows
        self._hooks.do("slow-disk", broker)

    def heal_disk(self, broker: int) -> None:
        self._hooks.do("heal-disk", broker)


def connect(target: Target, broker: int) -> Cluster:
    """To this broker alone."""
    server = {"bootstrap.servers": address(target.nodes[broker])}
    return cluster_of({**target.settings, **server}, timeout_s=ANSWER_S)
