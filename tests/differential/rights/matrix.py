"""One broker under comparison: its ACLs and its resources, and the answers that each user gets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from tests.differential.peer import Peer
from tests.differential.rights.questions import RECORDS, Question, Setting, committed, produce_by_name
from tests.differential.rights.users import ADMIN, AUTOMATIC, OTHERS, PAYMENTS, SECRET, SEEN, STAFF, User, admin_acls
from tests.differential.world import World

# Errors of a coordinator that is about to serve, or of another request of the same transactional id: ask again.
PASSING = (14, 15, 16, 51)
MODERN = "rights-modern"
NOT_AUTHORIZED = "Request <what Java prints of it> is not authorized."


class Matrix:
    def __init__(self, address: tuple[str, int], users: list[User]) -> None:
        self.world = World(address, "rights")
        self.world.peer.source = ADMIN
        self.users = users
        self.peers = {user.name: Peer(address, source=user.host) for user in users}
        self.setting = Setting({})
        self.member_epoch = 0

    def close(self) -> None:
        for peer in self.peers.values():
            peer.close()
        self.world.close()

    def prepare(self) -> None:
        world = self.world
        creations = [*admin_acls(), *(acl for user in self.users for acl in user.acls)]
        created = world.quietly("CreateAcls", 3, creations=creations)
        assert {each["error_code"] for each in created["results"]} == {0}, created
        for name in (SEEN, SECRET):
            self.setting.ids[name] = world.topic(name.removeprefix("rights-")).id
        world.quietly("Produce", 9, **produce_by_name(SEEN, SECRET, records=RECORDS))
        for key_type, key in enumerate((STAFF, PAYMENTS)):  # Apache Kafka makes the topics of coordinators for it
            world.quietly("FindCoordinator", 3, key=key, key_type=key_type)
        for group_id in (STAFF, OTHERS):
            self.until(lambda group_id=group_id: self.commit(group_id) == 0, f"{group_id} to be coordinated")
        self.until(self.initialised, "transactions to be coordinated")
        self.join_modern()
        self.until(self.rights_are_known, "ACLs to be known")

    def rights_are_known(self) -> bool:
        answer: Any = self.peers["nobody"].ask("Metadata", 12, topics=[{"name": SEEN}])
        return bool(answer["topics"][0]["error_code"] == 29)

    def until(self, condition: Any, what: str) -> None:
        self.world.until(condition, what)

    def commit(self, group_id: str) -> int:
        answer = self.world.quietly("OffsetCommit", 8, **(committed(8)(self.setting) | {"group_id": group_id}))
        return next(int(each["partitions"][0]["error_code"]) for each in answer["topics"] if each["name"] == SEEN)

    def initialised(self) -> bool:
        answer = self.world.quietly("InitProducerId", 4, transactional_id=PAYMENTS, transaction_timeout_ms=60_000)
        return bool(answer["error_code"] == 0)

    def join_modern(self) -> None:
        """A member of a consumer group, which stays for the length of a session."""
        fields = {
            "group_id": MODERN, "member_id": "rights-member", "member_epoch": 0, "rebalance_timeout_ms": 30_000,
            "subscribed_topic_names": [SEEN, SECRET], "topic_partitions": [],
        }  # fmt: skip

        def joined() -> bool:
            answer = self.world.quietly("ConsumerGroupHeartbeat", 1, **fields)
            return bool(answer["error_code"] == 0 and answer["assignment"] is not None)

        self.until(joined, "a member")

    def answers(self, question: Question, users: list[str]) -> Iterator[tuple[str, Any]]:
        for name in users:
            answer = self.asked(question, self.peers[name])
            if question.restores:
                self.restore(question.restores, answer)
            kept = only(answer, question.kept) if question.kept else answer
            yield name, in_order(self.world.normalise(kept))

    def asked(self, question: Question, peer: Peer) -> Any:
        deadline = time.monotonic() + 10
        while True:
            answer = peer.ask(question.api, question.version, **question.fields(self.setting))
            if isinstance(answer, str):
                peer.reconnect()
                return answer
            if answer.get("error_code") not in PASSING or time.monotonic() > deadline:
                return answer
            time.sleep(0.02)

    def restore(self, what: str, answer: Any) -> None:
        if what == "offsets":
            self.until(lambda: self.commit(STAFF) == 0, "offsets to be back")
        elif what == "no topic":
            self.world.quietly("DeleteTopics", 5, topic_names=[AUTOMATIC], timeout_ms=5_000)
            self.world.until_gone(AUTOMATIC)
        elif any(each["error_code"] == 0 for each in answer["responses"]):
            self.world.until_gone(SEEN)
            self.setting.ids[SEEN] = self.world.topic("seen").id
            self.world.quietly("Produce", 9, **produce_by_name(SEEN, records=RECORDS))


NAMES = [
    "name",
    "topic",
    "topic_name",
    "topic_id",
    "resource_type",
    "resource_name",
    "group_id",
    "user",
    "key",
    "partition_index",
]


def in_order(value: Any) -> Any:
    """Rows by what they are about: Apache Kafka makes many lists from hash tables, and the deletion's on purpose."""
    if isinstance(value, dict):
        return {key: in_order(one) for key, one in value.items()}
    if isinstance(value, str) and value.startswith("Request Request("):
        return NOT_AUTHORIZED
    if not isinstance(value, list):
        return value
    rows = [in_order(one) for one in value]
    if rows and all(isinstance(one, dict) for one in rows):
        return sorted(rows, key=lambda one: [str(one.get(name)) for name in NAMES])
    return sorted(rows) if all(isinstance(one, str) for one in rows) else rows


def only(value: Any, kept: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: only(one, kept) for key, one in value.items() if key in kept}
    return [only(one, kept) for one in value] if isinstance(value, list) else value
