"""A group of another protocol type, as Kafka Connect's workers make it: the broker carries bytes it does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests import apache_kafka
from tests.differential.peer import Peer
from tests.rebalance.described import ask
from tests.rebalance.scenario import Scenario

pytestmark = pytest.mark.skipif(
    not apache_kafka.available(), reason="Apache Kafka's schemas need java, and Maven the first time"
)

MEMBER_ID_REQUIRED, INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS = 79, 23, 27
COORDINATOR_STARTS = {14, 15, 16}  # loading, not available, not this one: the topic of groups is being made
PROTOCOLS = ("sessioned", "compatible")


class Worker:
    """One worker, that knows where it is reached and of no topic."""

    def __init__(self, bootstrap: str, group: str, url: str) -> None:
        host, port = bootstrap.split(":")
        self.peer = Peer((host, int(port)), client_id=url)
        self.group = group
        self.metadata = url.encode()
        self.member_id = ""
        self.generation = -1

    def ask(self, api: str, version: int, **fields: Any) -> dict[str, Any]:
        answer = self.peer.ask(api, version, group_id=self.group, **fields)
        assert not isinstance(answer, str), f"{api}: {answer}"
        return answer

    def send_join(self) -> None:
        self.peer.tell("JoinGroup", 9, group_id=self.group, **self.joining())

    def joining(self) -> dict[str, Any]:
        return {
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 60_000,
            "member_id": self.member_id,
            "protocol_type": "connect",
            "protocols": [{"name": name, "metadata": self.metadata} for name in PROTOCOLS],
        }

    def joined(self) -> dict[str, Any]:
        answer = self.peer.answer("JoinGroup", 9)
        assert not isinstance(answer, str), answer
        assert answer["error_code"] == 0, answer
        self.generation = answer["generation_id"]
        return answer

    def get_id(self, until: Callable[[Callable[[], bool], str], None]) -> None:
        def has_id() -> bool:
            # The topic of groups is made when a coordinator is first looked for.
            self.peer.ask("FindCoordinator", 3, key=self.group, key_type=0)
            answer = self.ask("JoinGroup", 9, **self.joining())
            assert answer["error_code"] in {MEMBER_ID_REQUIRED, *COORDINATOR_STARTS}, answer
            self.member_id = answer["member_id"] if answer["error_code"] == MEMBER_ID_REQUIRED else ""
            return bool(self.member_id)

        until(has_id, "an id")

    def sync(self, assignments: dict[str, bytes]) -> dict[str, Any]:
        wanted = [{"member_id": each, "assignment": content} for each, content in assignments.items()]
        return self.ask("SyncGroup", 5, **self.who(), **TYPE, assignments=wanted)

    def who(self) -> dict[str, Any]:
        return {"member_id": self.member_id, "generation_id": self.generation}


TYPE = {"protocol_type": "connect", "protocol_name": "sessioned"}
NewWorker = Callable[[str], Worker]


@pytest.fixture
def new_worker(scenario: Scenario) -> Iterator[NewWorker]:
    with ExitStack() as open_peers:

        def make(url: str) -> Worker:
            worker = Worker(scenario.bootstrap, scenario.group, url)
            open_peers.callback(worker.peer.close)
            worker.get_id(scenario.until)
            return worker

        yield make


def test_workers_of_connect_share_what_the_broker_does_not_know(scenario: Scenario, new_worker: NewWorker) -> None:
    first = new_worker("http://one:8083/")
    first.send_join()
    assert first.joined()["leader"] == first.member_id
    assert first.sync({first.member_id: b"\0\2everything"})["assignment"] == b"\0\2everything"
    second = new_worker("http://two:8083/")
    second.send_join()
    scenario.until(
        lambda: first.ask("Heartbeat", 4, **first.who())["error_code"] == REBALANCE_IN_PROGRESS, "word of the second"
    )
    first.send_join()
    led, followed = first.joined(), second.joined()
    assert {each["member_id"]: each["metadata"] for each in led["members"]} == {
        first.member_id: b"http://one:8083/",
        second.member_id: b"http://two:8083/",
    }
    assert (led["protocol_type"], led["protocol_name"], followed["members"]) == ("connect", "sessioned", [])
    shares = {first.member_id: b"\0\2half", second.member_id: b"\0\2other half"}
    assert first.sync(shares)["assignment"] == shares[first.member_id]
    assert second.sync({})["assignment"] == shares[second.member_id]


def test_a_consumer_may_not_enter_a_group_of_workers(scenario: Scenario, new_worker: NewWorker) -> None:
    worker = new_worker("http://one:8083/")
    worker.send_join()
    worker.joined()
    worker.sync({worker.member_id: b"all"})
    consumer = {**worker.joining(), "member_id": "", "protocol_type": "consumer"}
    refused = ask(scenario.bootstrap, "JoinGroup", 9, group_id=scenario.group, **consumer)
    assert refused["error_code"] == INCONSISTENT_GROUP_PROTOCOL
    described = ask(scenario.bootstrap, "DescribeGroups", 5, groups=[scenario.group])["groups"][0]
    assert (described["protocol_type"], described["protocol_data"]) == ("connect", "sessioned")
    listed = ask(scenario.bootstrap, "ListGroups", 4)["groups"]
    assert [each["protocol_type"] for each in listed if each["group_id"] == scenario.group] == ["connect"]
    left = worker.ask("LeaveGroup", 5, members=[{"member_id": worker.member_id}])
    assert left["members"][0]["error_code"] == 0
