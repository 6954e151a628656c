"""The rights that the guide names, given by Apache Kafka to a user who has no others: a pipeline runs with them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from moldau.core.ids import TopicPartition
from moldau.spark.clients.librdkafka import NoAnswer
from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.options import source_options
from moldau.spark.reading.librdkafka import read_by_library
from moldau.spark.reading.range_settings import RangeReading
from tests.apache_kafka import ApacheKafka, available
from tests.brokers import PROJECT
from tests.spark.topics import ANSWER_S_MAX, Topics

pytestmark = [
    pytest.mark.long,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900),
    pytest.mark.skipif(not available(), reason="Apache Kafka needs Java, and Maven or its jars"),
]

GUIDE = PROJECT / "docs" / "guides" / "spark-clusters.md"
USER, PASSWORD = "job", "job's own"
PREFIX = "team-a"
SOURCE, TARGET, MADE, LOOSE = "orders", "large-orders", "made-orders", "loose-orders"
RUN_S_MAX = 300.0
# What the guide calls a resource, as the names that a pipeline of this test has.
RESOURCES: dict[str, tuple[ResourceType, ResourcePatternType, tuple[str, ...]]] = {
    "topic that it reads": (ResourceType.TOPIC, ResourcePatternType.LITERAL, (SOURCE,)),
    "topic that it writes": (ResourceType.TOPIC, ResourcePatternType.LITERAL, (TARGET, LOOSE)),
    "topic that it makes": (ResourceType.TOPIC, ResourcePatternType.LITERAL, (MADE,)),
    "topic of dead letters": (
        ResourceType.TOPIC,
        ResourcePatternType.LITERAL,
        (f"{SOURCE}.dead-letters", "shop.orders.dead-letters"),
    ),
    "groups `PREFIX-`": (ResourceType.GROUP, ResourcePatternType.PREFIXED, (f"{PREFIX}-",)),
    "transactional ids `PREFIX-`": (ResourceType.TRANSACTIONAL_ID, ResourcePatternType.PREFIXED, (f"{PREFIX}-",)),
}
OPERATIONS = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Create": AclOperation.CREATE,
    "Delete": AclOperation.DELETE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
}


def rights() -> list[AclBinding]:
    """The rows of the guide's table that every job needs, as it names them."""
    part = GUIDE.read_text().partition("With authorization on")[2].partition("\n\n|")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in part.splitlines()[1:]]
    known = {row[0]: row[1] for row in rows if row[0] in RESOURCES}
    assert set(known) == set(RESOURCES), part
    return [
        AclBinding(kind, name, pattern, f"User:{USER}", "*", OPERATIONS[operation], AclPermissionType.ALLOW)
        for resource, (kind, pattern, names) in RESOURCES.items()
        for name in names
        for operation in re.split(r",\s*", known[resource])
    ]


@dataclass(frozen=True, slots=True)
class Secured:
    topics: Topics
    folder: Path
    bootstrap: str

    @property
    def options(self) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.bootstrap,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.username": USER,
            "kafka.sasl.password": PASSWORD,
            "groupIdPrefix": PREFIX,
        }

    def allow(self, bindings: list[AclBinding]) -> None:
        for made in self.topics.admin.create_acls(bindings).values():
            made.result(ANSWER_S_MAX)

    def forbid(self, kind: ResourceType) -> None:
        every = AclBindingFilter(
            kind, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
        )
        for gone in self.topics.admin.delete_acls([every]).values():
            assert gone.result(ANSWER_S_MAX)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "moldau", "pipeline", *words],
            cwd=self.folder,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "JOB_PASSWORD": PASSWORD},
            capture_output=True,
            text=True,
            timeout=RUN_S_MAX,
            check=False,
        )


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    with ApacheKafka(passwords={USER: PASSWORD}) as broker:
        topics = Topics(broker.bootstrap)
        topics.create_named(SOURCE, partitions=3)
        for name in (TARGET, LOOSE):
            topics.create_named(name)
        (folder / "shop.sql").write_text(pipeline(broker))
        yield Secured(topics, folder, broker.secured_bootstrap)


def pipeline(broker: ApacheKafka) -> str:
    schema = "id bigint, amount double"
    return f"""
    set bootstrap.servers = '{broker.secured_bootstrap}';
    set kafka.security.protocol = 'SASL_PLAINTEXT';
    set kafka.sasl.mechanism = 'PLAIN';
    set kafka.sasl.username = '{USER}';
    set kafka.sasl.password = '${{env:JOB_PASSWORD}}';
    set groupIdPrefix = '{PREFIX}';
    set transactionalIdPrefix = '{PREFIX}';
    set spark.sql.shuffle.partitions = 3;
    create stream orders from topic '{SOURCE}' with (
        valueFormat = json, valueSchema = '{schema}', onError = deadletter
    );
    expect positive on orders check (amount > 0) otherwise dead letter;
    create sink large into topic '{TARGET}' key (id) as select id, amount from orders where amount > 100;
    create sink made into topic '{MADE}' as select /*+ repartition(3) */ id from orders;
    create sink loose into topic '{LOOSE}' with (delivery = 'at-least-once') as select id from orders;
    """


def orders(*ids: int) -> list[bytes]:
    return [json.dumps({"id": number, "amount": 60.0 * number}).encode() for number in ids]


def ids(topics: Topics, topic: str) -> list[int]:
    return sorted(json.loads(value or b"")["id"] for value in topics.values(topic))


def test_a_pipeline_runs_with_the_rights_of_the_guide(secured: Secured) -> None:
    topics = secured.topics
    secured.allow(rights())
    topics.produce(SOURCE, [*orders(*range(1, 10)), b"no order", *orders(-1)])
    for first, last in ((10, 10), (11, 12)):
        done = secured.run("run", "shop.sql", "--once", "--master", "local[2]")
        assert done.returncode == 0, done.stdout + done.stderr
        topics.produce(SOURCE, orders(*range(first, last + 1)))
    done = secured.run("status", "shop.sql")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ids(topics, TARGET) == list(range(2, 11))
    assert ids(topics, MADE) == ids(topics, LOOSE) == list(range(1, 11))
    assert topics.values(f"{SOURCE}.dead-letters").count(b"no order") == 3  # a letter for each query that reads it
    assert [group for group in topics.groups() if not group.startswith(f"{PREFIX}-")] == []
    transactional_ids = topics.transactional_ids()
    assert transactional_ids
    assert [name for name in transactional_ids if not name.startswith(f"{PREFIX}-")] == []


def test_a_reader_names_a_group_that_it_may_describe(secured: Secured) -> None:
    """librdkafka asks for the coordinator of its group, also where it commits nothing."""
    secured.allow(rights())
    secured.topics.produce(SOURCE, orders(1), partition=0)
    options = source_options({"subscribe": SOURCE, **secured.options}, streaming=False)

    def read(group: str) -> int:
        reading = RangeReading(
            client=options.client, columns=("value",), poll_timeout_ms=60_000, fails_on_data_loss=True, group=group
        )
        wanted = OffsetRange(TopicPartition(SOURCE, 0), 0, 1)
        return sum(rows.num_rows for rows in read_by_library(wanted, reading))

    assert options.reading_group == f"{PREFIX}-reader"
    assert read(options.reading_group) == 1
    # Records may be there before the coordinator's answer is.
    with pytest.raises(NoAnswer, match="Group authorization failed"):
        list(map(read, repeat("moldau-spark")))


@pytest.mark.parametrize(
    ("kind", "told"),
    [(ResourceType.TRANSACTIONAL_ID, "Transactional Id authorization failed"), (ResourceType.GROUP, "Group auth")],
)
def test_a_right_that_is_missing_is_named(secured: Secured, kind: ResourceType, told: str) -> None:
    secured.allow(rights())
    secured.topics.produce(SOURCE, orders(20))
    secured.forbid(kind)
    done = secured.run("run", "shop.sql", "--once", "--master", "local[2]", "--restarts", "0")
    assert done.returncode != 0
    assert told in done.stderr, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
