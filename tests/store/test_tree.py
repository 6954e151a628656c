"""What the store makes of a service's answers, in an order that no real service can be made to give."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any, cast

import pytest

from moldau.core.clock import SystemClock, elapsed_s
from moldau.store.process import this_process
from moldau.store.store import START, MetadataEntry, Registration, StoreError, Tail
from moldau.store.tree import layout
from moldau.store.tree.client import (
    NO_SESSION,
    Change,
    Check,
    Create,
    Delete,
    Node,
    NoNode,
    Operation,
    Refusal,
    Signal,
    TransactionRefused,
    Unreachable,
)
from moldau.store.tree.store import TreeStore
from tests.store.kinds import run, until


class Tree:
    """A service for consensus in memory: nodes with versions of their own, as ZooKeeper has them."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.sessions = count(1)

    def commit(self, operations: tuple[Operation, ...], session_id: int) -> None:
        after = dict(self.nodes)
        for index, each in enumerate(operations):
            node = after.get(each.path)
            if isinstance(each, Create):
                if node is not None:
                    raise TransactionRefused(index, Refusal.EXISTS)
                after[each.path] = Node(each.data, 0, session_id if each.ephemeral else NO_SESSION)
                continue
            if node is None:
                raise TransactionRefused(index, Refusal.MISSING)
            if each.version not in (None, node.version):
                raise TransactionRefused(index, Refusal.CHANGED)
            if isinstance(each, Change):
                after[each.path] = Node(each.data, node.version + 1, node.session_id)
            elif not isinstance(each, Check):
                del after[each.path]
        self.nodes = after


class Client:
    """A session with it. Whoever changes a node waits while `passing` is not set."""

    service, servers, session_timeout_s = "a tree", "memory", 0.3
    on_session_ended, is_connected = None, True

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.session_id: int | None = next(tree.sessions)
        self.passing, self.waits = asyncio.Event(), asyncio.Event()
        self.passing.set()
        self.failures = 0
        self.watches: list[tuple[str, Signal]] = []

    @property
    def prolonged_s(self) -> float:
        return elapsed_s()

    async def find(self, path: str, *, watch: Signal | None = None) -> Node | None:
        if watch is not None:
            self.watches.append((path, watch))
        return self._tree.nodes.get(path)

    find_once = find

    async def get(self, path: str, *, watch: Signal | None = None) -> Node:
        node = await self.find(path, watch=watch)
        if node is None:
            raise NoNode(path)
        return node

    async def children(self, path: str, *, watch: Signal | None = None) -> list[str]:
        return [each.rpartition("/")[2] for each in self._tree.nodes if each.rpartition("/")[0] == path]

    async def commit_once(self, *operations: Operation) -> None:
        self.failures -= 1
        if self.failures >= 0:
            raise Unreachable("no server answers")
        if isinstance(operations[0], Change) and not self.passing.is_set() and len(operations) == 1:
            self.waits.set()
            await self.passing.wait()
        self._tree.commit(operations, self.session_id or NO_SESSION)

    commit = commit_once

    async def prepare(self, path: str) -> None:
        self._tree.nodes.setdefault(path, Node(b"", 0, NO_SESSION))

    async def connected(self) -> None: ...

    catch_up = stop = connected


async def opened(tree: Tree) -> tuple[TreeStore, Client]:
    client: Any = Client(tree)
    return await TreeStore.open(client, SystemClock()), client


def test_a_change_of_a_registration_that_was_evicted_is_not_made_to_the_next_one() -> None:
    """Both belong to one session. Who was evicted registers anew, and a change that is late would undo that."""

    async def test() -> None:
        tree = Tree()
        (store, client), (other, _) = await opened(tree), await opened(tree)
        lost = asyncio.Event()
        store.on_session_lost = lost.set
        await store.register(Registration(1, b"opening"))
        await store.update(Registration(1, b"first"))
        client.passing.clear()
        late = asyncio.create_task(store.update(Registration(1, b"first, changed")))
        await client.waits.wait()
        assert await other.evict(Registration(1, b"first"))
        await lost.wait()
        await store.register(Registration(1, b"second"))
        client.passing.set()
        with pytest.raises(StoreError):
            await late
        assert await other.registrations() == [Registration(1, b"second")]
        await store.update(Registration(1, b"second, changed"))
        assert await other.registrations() == [Registration(1, b"second, changed")]
        await store.close()
        await other.close()

    run(test)


def test_a_registration_that_the_service_would_not_take_is_refused() -> None:
    """ZooKeeper hangs up on it, which looks like any connection that was lost, and it would be sent again for ever."""

    async def test() -> None:
        store, _ = await opened(Tree())
        await store.register(Registration(1, b"1"))
        with pytest.raises(StoreError, match=r"registration of broker 1 has 1,0.* bytes; the metadata store takes"):
            await store.update(Registration(1, bytes(800_000)))
        await store.update(Registration(1, bytes(700_000)))
        await store.close()

    run(test)


def test_a_controller_that_could_not_resign_does_so_when_it_tries_again() -> None:
    async def test() -> None:
        tree = Tree()
        (store, client), (other, _) = await opened(tree), await opened(tree)
        await store.register(Registration(1, b"1"))
        await other.register(Registration(2, b"2"))
        leadership = await store.elect(1)
        client.failures = 1
        with pytest.raises(StoreError):
            await store.resign(leadership)
        assert await other.elect(2) == leadership
        await store.resign(leadership)
        assert (await other.elect(2)).broker_id == 2
        await store.close()
        await other.close()

    run(test)


class SlowRemoval(Client):
    """A service that takes long to remove entries of the log."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self.removing = asyncio.Event()

    async def commit(self, *operations: Operation) -> None:
        if isinstance(operations[0], Delete) and operations[0].path.startswith(layout.ENTRIES):
            await self.removing.wait()
        await self.commit_once(*operations)


def entries_in(tree: Tree) -> list[int]:
    return sorted(int(path.rpartition("/")[2]) for path in tree.nodes if path.startswith(f"{layout.ENTRIES}/"))


def test_nothing_waits_for_the_removal_of_what_a_snapshot_replaced() -> None:
    """Thousands of entries take seconds, and a leader may have to be elected meanwhile."""

    async def test() -> None:
        tree = Tree()
        client = SlowRemoval(tree)
        store = await TreeStore.open(cast(Any, client), SystemClock())
        await store.register(Registration(1, b"1"))
        epoch = (await store.elect(1)).epoch
        for text in (b"a", b"b", b"c"):
            await store.append(text, controller_epoch=epoch)
        await store.snapshot(b"ab", position=2, controller_epoch=epoch)
        assert await store.append(b"d", controller_epoch=epoch) == 4
        await store.snapshot(b"abc", position=3, controller_epoch=epoch)
        assert entries_in(tree) == [1, 2, 3, 4]
        client.removing.set()
        await until(lambda: entries_in(tree) == [3, 4])
        await until(lambda: store._log._removing is None)
        del tree.nodes[layout.entry_path(3)]  # as if a removal had been interrupted
        await store.snapshot(b"abcd", position=4, controller_epoch=epoch)
        await until(lambda: entries_in(tree) == [])
        client.removing.clear()
        await store.append(b"e", controller_epoch=epoch)
        for text in (b"abcde", b"the same"):
            await store.snapshot(text, position=5, controller_epoch=epoch)
        client.removing.set()
        await until(lambda: store._log._removing is None)
        assert await store.read(START) == Tail(MetadataEntry(5, b"the same"), [])
        await store.close()

    run(test)


def test_nothing_is_removed_of_a_log_that_was_moved() -> None:
    """It begins with a snapshot: of the million entries before it, none was ever there."""

    async def test() -> None:
        tree = Tree()
        store, client = await opened(tree)
        await store.register(Registration(1, b"1"))
        epoch = (await store.elect(1)).epoch
        before = client.failures
        await store.snapshot(b"moved", position=1_000_000, controller_epoch=epoch)
        await until(lambda: store._log._removing is None)
        assert await store.append(b"next", controller_epoch=epoch) == 1_000_001
        assert before - client.failures < 10, "each request counts down"
        await store.snapshot(b"both", position=1_000_001, controller_epoch=epoch)
        await until(lambda: entries_in(tree) == [])
        await store.close()

    run(test)


def test_whoever_waits_again_and_again_for_its_id_watches_it_once() -> None:
    """A client keeps each watch, and for etcd a connection with it."""

    async def test() -> None:
        tree = Tree()
        elsewhere: Any = Client(tree)
        store = await TreeStore.open(elsewhere, SystemClock(), process=this_process()._replace(boot="another machine"))
        await store.register(Registration(1, b"1"))
        other, client = await opened(tree)
        for _ in range(2):
            with pytest.raises(StoreError, match="already running"):
                await other.register(Registration(1, b"1"))
        assert len(client.watches) == 2
        assert len(set(client.watches)) == 1
        await store.close()
        await other.close()

    run(test)
