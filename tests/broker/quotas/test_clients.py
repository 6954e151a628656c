"""What clients did, how long they pause for it, and what is remembered of them."""

from __future__ import annotations

from moldau.broker.quotas.clients import INACTIVE_MS_MAX, Client, ClientQuotas
from moldau.broker.quotas.rates import Windows
from moldau.controller.settings.quotas import quota_entity

APP, TOOL = Client("alice", "app"), Client("alice", "tool")
EVERY_CLIENT = quota_entity([("client-id", None)])
ALICE = quota_entity([("user", "alice")])
MIB = 1 << 20


class Time:
    now_ms = 5_000_000

    def __call__(self) -> int:
        return self.now_ms


def quotas(time: Time, clients_max: int = 100, **values: float) -> ClientQuotas:
    """Of every client id."""
    made = ClientQuotas(time, windows=Windows(), mutation_windows=Windows(), clients_max=clients_max)
    made.limit({EVERY_CLIENT: values})
    return made


def test_a_client_pauses_until_its_rate_is_back_at_the_limit() -> None:
    time = Time()
    limited = quotas(time, producer_byte_rate=MIB)
    assert limited.produced(APP, 10 * MIB) == 0
    assert limited.produced(APP, 2 * MIB) == 2_000
    assert limited.produced(TOOL, MIB) == 0, "another client has a rate of its own"


def test_clients_of_a_user_share_the_limit_of_the_user() -> None:
    limited = quotas(Time())
    limited.limit({ALICE: {"producer_byte_rate": float(MIB)}})
    assert limited.produced(APP, 10 * MIB) == 0
    assert limited.produced(TOOL, MIB) == 1_000


def test_another_limit_counts_at_once_for_what_was_before() -> None:
    limited = quotas(Time(), producer_byte_rate=10 * MIB)
    assert limited.produced(APP, 20 * MIB) == 0
    limited.limit({EVERY_CLIENT: {"producer_byte_rate": float(MIB)}})
    assert limited.produced(APP, 0) == 10_000
    limited.limit({})
    assert limited.produced(APP, 20 * MIB) == 0


def test_an_answer_that_is_not_given_is_not_counted() -> None:
    time = Time()
    limited = quotas(time, consumer_byte_rate=MIB)
    assert limited.fetched(APP, 8 * MIB) == 0
    assert limited.fetched(APP, 4 * MIB) == 2_000
    assert limited.fetched(APP, 4 * MIB) == 2_000
    assert limited.fetched(APP, 2 * MIB) == 0


def test_an_answer_has_no_more_than_all_windows_allow() -> None:
    limited = quotas(Time(), consumer_byte_rate=1_000)
    assert limited.fetch_bytes_max(APP) == 10_000
    limited.limit({})
    assert limited.fetch_bytes_max(APP) is None


def test_a_batch_beyond_all_windows_is_let_through_when_nothing_else_was() -> None:
    time = Time()
    limited = quotas(time, consumer_byte_rate=1_000)
    assert limited.fetched(APP, MIB) == 0
    assert limited.fetched(APP, MIB) > 0
    time.now_ms += 11_000
    assert limited.fetched(APP, MIB) == 0


def test_time_on_the_loop_is_a_percentage_and_its_pause_at_most_a_window() -> None:
    limited = quotas(Time(), request_percentage=1.0)
    assert limited.counts_time
    assert limited.took(APP, 100_000_000) == 0  # a tenth of a second in ten
    assert limited.took(APP, 5_000_000) == 500
    assert limited.took(APP, 1_000_000_000) == 1_000


def test_strict_mutations_are_refused_once_the_bucket_is_overdrawn() -> None:
    time = Time()
    limited = quotas(time, controller_mutation_rate=1.0)
    request = limited.mutating(APP, strict=True)
    assert request is not None
    assert request.admit(10)
    assert request.admit(6), "what is there is given whole"
    assert not request.admit(1)
    assert request.throttle_ms == 5_000
    time.now_ms += 2_000
    assert request.throttle_ms == 3_000
    time.now_ms += 3_000
    again = limited.mutating(APP, strict=True)
    assert again is not None
    assert again.admit(1)
    assert again.throttle_ms == 0


def test_older_clients_are_throttled_and_not_refused() -> None:
    limited = quotas(Time(), controller_mutation_rate=1.0)
    request = limited.mutating(APP, strict=False)
    assert request is not None
    assert request.admit(16)
    assert request.throttle_ms == 5_000
    assert request.admit(1)
    assert request.throttle_ms == 6_000
    assert quotas(Time(), producer_byte_rate=1.0).mutating(APP, strict=False) is None


def test_a_new_client_id_for_each_request_takes_no_more_memory() -> None:
    time = Time()
    limited = quotas(time, clients_max=10, producer_byte_rate=1.0, controller_mutation_rate=1.0)
    for number in range(1_000):
        client = Client("alice", f"id-{number}")
        limited.produced(client, 1)
        limited.mutating(client, strict=True)
        assert limited.clients <= 20
    limited.produced(APP, 100)
    for number in range(9):
        assert limited.produced(APP, 0) > 0, "one that is active is not forgotten"
        limited.produced(Client("alice", f"other-{number}"), 1)


def test_who_was_idle_for_an_hour_is_forgotten() -> None:
    time = Time()
    limited = quotas(time, producer_byte_rate=1.0)
    limited.produced(APP, 1)
    time.now_ms += INACTIVE_MS_MAX
    limited.produced(TOOL, 1)
    assert limited.clients == 1


def test_without_a_limit_nothing_is_remembered() -> None:
    limited = quotas(Time())
    limited.produced(APP, 1)
    limited.took(APP, 1)
    limited.fetched(APP, 1)
    assert limited.clients == 0
    assert not limited.counts_time
