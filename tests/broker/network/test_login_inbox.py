"""What strangers may keep in memory, and who has to go when it is too much."""

from __future__ import annotations

import struct

from moldau.broker.network.frame_budget import FrameBudget
from moldau.broker.network.secured.login_inbox import FREE_LOGIN_BYTES, RECEIVED_AT_ONCE_MAX, LoginInbox, LoginMemory
from moldau.core.limits import KIB

LIMIT = 512 * KIB
ALL = 1024 * KIB


class Strangers:
    def __init__(self) -> None:
        self.memory = LoginMemory(ALL)
        self.budget = FrameBudget(1)
        self.gone: list[LoginInbox] = []

    def come(self) -> LoginInbox:
        inbox = LoginInbox(
            memoryview(bytearray(64 * KIB)), frame_bytes_max=100 << 20, budget=self.budget, memory=self.memory
        )
        inbox.expect(LIMIT, is_token=False, is_known=False)
        inbox.on_evicted = lambda: self.gone.append(inbox)
        return inbox


def send(inbox: LoginInbox, data: bytes) -> None:
    while data:
        space = inbox.space()
        size = min(len(space), len(data))
        space[:size] = data[:size]
        inbox.received(size)
        assert inbox.next_frame() is None
        assert inbox.keep(), "strangers are never kept waiting"
        data = data[size:]


def test_the_first_who_holds_much_has_to_go_when_it_is_too_much() -> None:
    strangers = Strangers()
    half = struct.pack(">i", LIMIT) + bytes(300 * KIB)
    inboxes = [strangers.come() for _ in range(6)]
    for inbox in inboxes:
        send(inbox, half)
    assert strangers.gone == inboxes[: len(strangers.gone)]
    assert 2 <= len(strangers.gone) < 6
    assert strangers.memory._held_bytes <= ALL
    assert not strangers.budget.is_short
    for inbox in inboxes:
        inbox.close()
    assert strangers.memory._held_bytes == 0


def test_little_is_not_counted() -> None:
    strangers = Strangers()
    for _ in range(2 * ALL // FREE_LOGIN_BYTES):
        send(strangers.come(), struct.pack(">i", FREE_LOGIN_BYTES - 4) + bytes(1_000))
    assert strangers.gone == []


def test_who_has_logged_in_holds_nothing_of_it_and_counts_as_others_do() -> None:
    strangers = Strangers()
    inbox = strangers.come()
    send(inbox, struct.pack(">i", LIMIT) + bytes(300 * KIB))
    inbox.expect(None, is_token=False, is_known=True)
    assert strangers.memory._held_bytes == 0
    inbox.close()
    send(inbox, struct.pack(">i", 2 * LIMIT) + bytes(400 * KIB))
    assert inbox.large_frames == 1
    assert strangers.memory._held_bytes == 0
    inbox.close()
    assert strangers.budget._held_bytes == 0


def test_whoever_logs_in_again_is_no_stranger() -> None:
    """Half of a new token has come when strangers fill their memory: they have none of its."""
    strangers = Strangers()
    known = strangers.come()
    known.expect(LIMIT, is_token=False, is_known=True)
    assert len(known.space()) > RECEIVED_AT_ONCE_MAX
    send(known, struct.pack(">i", LIMIT) + bytes(5_000))
    for _ in range(6):
        send(strangers.come(), struct.pack(">i", LIMIT) + bytes(300 * KIB))
    assert len(strangers.gone) >= 2
    assert known not in strangers.gone


def test_little_of_a_stranger_is_received_at_once() -> None:
    assert len(Strangers().come().space()) == RECEIVED_AT_ONCE_MAX
