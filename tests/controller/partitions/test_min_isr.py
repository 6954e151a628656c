"""Nobody is eligible for whom a leader did not wait: brokers may go by different values of `min.insync.replicas`."""

from __future__ import annotations

from msgspec.structs import replace

from moldau.controller.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from moldau.controller.machine import apply, snapshot_records
from moldau.controller.members.membership import decide_take_in
from moldau.controller.members.registration import BrokerRegistration
from moldau.controller.partitions.isr_changes import InSync, WantedIsr, decide_alter_partition
from moldau.controller.partitions.min_isr import MIN_ISR, least_min_isr
from moldau.controller.records import BrokerConfigsChanged, BrokerRegistered, TopicCreated
from moldau.core.config.broker import BrokerConfig
from tests.controller.clusters import ENDPOINTS, topic_id

ORDERS = topic_id(1)
CONTROLLER = BrokerConfig.of({"node.id": "2", MIN_ISR: "2"})


def brokers(*min_isr: int) -> ClusterImage:
    """Brokers 1, 2, ... with these values in their files; the first leads, and the second is in sync with it."""
    registered = [BrokerImage(each, ENDPOINTS, min_insync_replicas=value) for each, value in enumerate(min_isr, 1)]
    state = PartitionImage((1, 2, 3), (1, 2), 1)
    topic = TopicImage("orders", ORDERS, (state,))
    return apply(ClusterImage(), [*map(BrokerRegistered, registered), TopicCreated(topic)])


def shrunk(image: ClusterImage) -> ClusterImage:
    """The leader goes on without the second broker."""
    alone = WantedIsr(ORDERS, 0, 0, 0, (InSync(1),))
    return apply(image, decide_alter_partition(image, 1, 0, [alone], config=CONTROLLER).records)


def eligible(image: ClusterImage) -> tuple[int, ...]:
    return image.topics["orders"].partitions[0].elr


def test_a_leader_that_goes_on_alone_leaves_nobody_eligible_whatever_the_controller_has_in_its_file() -> None:
    assert eligible(shrunk(brokers(2, 2, 2))) == (2,)
    assert eligible(shrunk(brokers(1, 2, 2))) == ()
    assert eligible(shrunk(brokers(0, 0, 0))) == (2,), "brokers that do not tell have what the controller has"


def test_what_is_set_for_a_topic_or_for_all_brokers_counts_before_their_files() -> None:
    image = apply(brokers(2, 2, 2), [BrokerConfigsChanged("", {MIN_ISR: "1"})])
    assert eligible(shrunk(image)) == (), "also while the controller has not followed its own decision yet"
    image = apply(brokers(1, 1, 1), [BrokerConfigsChanged("", {MIN_ISR: "2"})])
    assert eligible(shrunk(image)) == (2,)
    assert eligible(shrunk(apply(image, [BrokerConfigsChanged("1", {MIN_ISR: "1"})]))) == ()
    orders = replace(image.topics["orders"], configs={MIN_ISR: "2"})
    assert eligible(shrunk(apply(brokers(1, 1, 1), [TopicCreated(orders)]))) == (2,)


def test_a_broker_that_comes_with_a_lower_value_ends_what_others_are_eligible_for() -> None:
    """It may be elected, and goes on alone then."""
    image = shrunk(brokers(2, 2, 2))
    gone = replace(image.brokers[3], fenced=True)
    image = apply(image, [BrokerRegistered(gone)])
    assert eligible(image) == (2,)
    assert eligible(apply(image, [BrokerRegistered(replace(gone, fenced=False, epoch=9))])) == (2,)
    assert eligible(apply(image, [BrokerRegistered(replace(gone, fenced=False, min_insync_replicas=1))])) == ()
    assert eligible(apply(image, [BrokerRegistered(BrokerImage(4, ENDPOINTS, min_insync_replicas=1))])) == ()
    assert eligible(apply(image, [BrokerRegistered(BrokerImage(4, ENDPOINTS, min_insync_replicas=3))])) == (2,)


def test_a_broker_tells_what_is_in_its_file_when_it_registers() -> None:
    registration = BrokerRegistration(4, b"process", ENDPOINTS, min_insync_replicas=1)
    taken_in = decide_take_in(brokers(2, 2, 2), [registration], controller_id=2)
    assert least_min_isr(apply(brokers(2, 2, 2), taken_in.records)) == 1


def test_a_snapshot_keeps_who_is_eligible() -> None:
    image = shrunk(brokers(3, 2, 2))
    assert eligible(apply(ClusterImage(), list(snapshot_records(image)))) == (2,)


def test_a_stored_value_that_this_version_refuses_is_no_minimum() -> None:
    image = apply(brokers(2, 2, 3), [BrokerConfigsChanged("", {MIN_ISR: "none"})])
    assert least_min_isr(image) == 2
