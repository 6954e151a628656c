"""Who may ask when, as Apache Kafka's ClientMetricsManager has it."""

from __future__ import annotations

from moldau.broker.context import ClientInformation
from moldau.broker.telemetry.instances import Instance, Instances, Push, is_reserved
from moldau.core.errors import ErrorCode
from tests.broker.telemetry.clients import ID, client

CONFIGS = {"all": {"metrics": "*", "interval.ms": "1000"}}
NONE, THROTTLED = ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED


class Story:
    """One client on one connection."""

    def __init__(self, instances_max: int = 100) -> None:
        self.instances = Instances(payload_bytes_max=100, instances_max=instances_max)
        self.connection = ClientInformation()
        self.configs = CONFIGS

    def instance(self, now_ms: int, instance_id: bytes = ID) -> Instance:
        return self.instances.of(client(instance_id), self.connection, self.configs, now_ms)

    def get(self, now_ms: int) -> ErrorCode:
        return self.instances.refuse_get(self.instance(now_ms), now_ms)

    def push(
        self, now_ms: int, *, ends: bool = False, codec: int = 0, size: int = 1, subscription: int | None = None
    ) -> ErrorCode:
        instance = self.instance(now_ms)
        wanted = instance.subscription_id if subscription is None else subscription
        return self.instances.refuse_push(instance, Push(wanted, ends, codec, size), now_ms)


def test_a_subscription_is_given_once_in_an_interval() -> None:
    story = Story()
    assert [story.get(each) for each in (0, 999, 1_000, 1_999)] == [NONE, THROTTLED, NONE, THROTTLED]
    assert story.instances.throttled == 2


def test_the_first_push_after_a_subscription_comes_when_it_likes() -> None:
    story = Story()
    assert [story.get(0), story.push(1), story.push(2)] == [NONE, NONE, THROTTLED]
    assert story.push(1_001) is NONE


def test_a_last_push_is_never_too_early_and_nothing_comes_after_it() -> None:
    story = Story()
    assert [story.push(0), story.push(1, ends=True), story.push(5_000)] == [NONE, NONE, ErrorCode.INVALID_REQUEST]
    assert story.push(6_000) is NONE, "what was refused was no last push, and what follows is judged by it"


def test_a_push_for_another_subscription_has_the_new_one_fetched_at_once() -> None:
    story = Story()
    assert story.get(0) is NONE
    assert story.push(1, subscription=5) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert story.get(2) is NONE
    assert story.instances.unknown_subscriptions == 1


def test_codecs_and_sizes() -> None:
    assert Story().push(0, codec=9) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert Story().push(0, size=101) is ErrorCode.TELEMETRY_TOO_LARGE
    assert [Story().push(0, codec=each, size=100) for each in range(5)] == [NONE] * 5


def test_a_changed_configuration_makes_the_instance_anew() -> None:
    story = Story()
    assert story.get(0) is NONE
    before = story.instance(1).subscription_id
    story.configs = {"all": {"metrics": "org", "interval.ms": "1000"}}
    assert story.push(2, subscription=before) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert (story.get(3), story.instance(4).wanted.metrics) == (NONE, ("org",))


def test_an_instance_ends_with_its_connection() -> None:
    story = Story()
    assert story.get(0) is NONE
    story.connection.is_connected = False
    story.connection = ClientInformation()
    assert story.get(1) is NONE


def test_idle_instances_are_forgotten() -> None:
    story = Story()
    story.instance(0)
    story.instance(30_000, b"b" * 16)
    story.instance(60_000, b"c" * 16)
    assert len(story.instances) == 2


def test_whoever_asked_longest_ago_makes_room() -> None:
    story = Story(instances_max=2)
    first = story.instance(0)
    for each in (b"b" * 16, ID, b"c" * 16):
        story.instance(1, each)
    assert len(story.instances) == 2
    assert story.instance(2) is first


def test_ids_that_nobody_may_have() -> None:
    assert is_reserved(bytes(16))
    assert is_reserved(bytes(15) + b"\1")
    assert not is_reserved(ID)
