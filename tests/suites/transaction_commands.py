"""TransactionsCommand in its breadth, on transactions that live and on some that hang.

`transcripts/transactions.txt` holds what Apache Kafka's broker makes the tool print, and
`python -m tests.suites.transaction_commands` prints it anew.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from types import MappingProxyType

from confluent_kafka import Producer

from moldau.wire import messages
from moldau.wire.batch import TRANSACTIONAL, build_batch
from moldau.wire.messages.metadata import MetadataRequestTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from moldau.wire.records import Record
from tests.broker.handlers.wire import Wire
from tests.brokers import running_broker
from tests.clients.drivers import LineProcess
from tests.clients.toolchains import tool_host
from tests.faults.clients import create_topic
from tests.suites.tools import Printed, Tools

# Without it a broker asks the coordinator before it takes a first batch, and no transaction can come to hang.
PROPERTIES = {"transaction.partition.verification.enable": "false"}
SETTLE_S = 30.0
HOUR_MS = 3_600_000
TRANSACTION = 1  # among the kinds of coordinators

NOBODY = """
list
describe --transactional-id nobody
describe-producers --topic orders --partition 0
describe-producers --topic orders --partition 0 --broker-id BROKER
abort --topic orders --partition 0 --start-offset 0
abort --topic orders --partition 0
abort --topic orders --partition 0 --producer-id 4711
abort --topic orders --partition 0 --producer-id 4711 --producer-epoch 0
abort --topic orders --partition 0 --producer-id 4711 --producer-epoch 0 --coordinator-epoch 0
forceTerminateTransaction --transactionalId nobody
find-hanging
find-hanging --partition 0
find-hanging --topic orders
find-hanging --topic missing
find-hanging --broker-id BROKER
"""
OPEN = """
list
list --duration-filter 86400000
list --duration-filter 0
list --transactional-id-pattern ^li.*
list --transactional-id-pattern ^x
list --transactional-id-pattern (
describe --transactional-id living
describe-producers --topic orders --partition 0
describe-producers --topic orders --partition 0 --broker-id BROKER
find-hanging --topic orders --max-transaction-timeout 0
find-hanging --broker-id BROKER --max-transaction-timeout 0
abort --topic orders --partition 0 --start-offset 7
"""
COMMITTED = """
list
describe --transactional-id living
describe-producers --topic orders --partition 0
abort --topic orders --partition 0 --start-offset 0
forceTerminateTransaction --transactionalId living
describe --transactional-id living
"""
FORCED = """
forceTerminateTransaction --transactionalId forced
describe --transactional-id forced
describe-producers --topic orders --partition 1
"""
HANGING = """
list
describe --transactional-id hanging
describe-producers --topic orders --partition 2
find-hanging --topic orders
find-hanging --topic orders --partition 2
find-hanging --topic orders --partition 0
find-hanging --topic orders --max-transaction-timeout 600
find-hanging --broker-id BROKER
forceTerminateTransaction --transactionalId hanging
find-hanging --topic orders
abort --topic orders --partition 2 --start-offset 0
describe-producers --topic orders --partition 2
find-hanging --topic orders
"""
FENCED = """
find-hanging --topic orders
abort --topic orders --partition 3 --producer-id PRODUCER --producer-epoch 0 --coordinator-epoch 0
find-hanging --topic orders
"""


def transcript(tools: Tools) -> str:
    """Everything the commands print on a fresh broker with `PROPERTIES`, in a form that is the same each time."""
    create_topic(tools.bootstrap, "orders", partitions=4)
    told = _tell(tools, NOBODY)
    producer = _open_transaction(tools.bootstrap, "living", partition=0)
    told += _tell(tools, OPEN)
    producer.commit_transaction(SETTLE_S)
    _await_completion(tools.bootstrap, "living")
    told += _tell(tools, COMMITTED)
    _open_transaction(tools.bootstrap, "forced", partition=1)
    told += _tell(tools, FORCED)
    _leave_hanging(tools.bootstrap, "hanging", partition=2)
    told += _tell(tools, HANGING)
    producer_id = _leave_hanging(tools.bootstrap, "later", partition=3)
    return told + _tell(tools, FENCED, PRODUCER=str(producer_id))


def _open_transaction(bootstrap: str, transactional_id: str, *, partition: int) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(SETTLE_S)
    producer.begin_transaction()
    producer.produce("orders", b"v", partition=partition)
    assert producer.flush(SETTLE_S) == 0
    return producer


def _await_completion(bootstrap: str, transactional_id: str) -> None:
    """A commit is answered when it is decided; the markers come a moment later."""
    request = messages.DescribeTransactionsRequest(transactional_ids=[transactional_id])
    deadline_s = time.monotonic() + SETTLE_S
    with closing(Wire(_coordinator(bootstrap, transactional_id))) as wire:
        while True:
            (found,) = wire.ask(request, 0, messages.DescribeTransactionsResponse).transaction_states
            if found.transaction_state == "CompleteCommit":
                return
            assert time.monotonic() < deadline_s, found


def _leave_hanging(bootstrap: str, transactional_id: str, *, partition: int) -> int:
    """A transactional batch, an hour old, in a partition that nobody told the coordinator about; the producer's id."""
    with closing(Wire(_coordinator(bootstrap, transactional_id))) as wire:
        asked = messages.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        found = wire.ask(asked, 4, messages.InitProducerIdResponse)
        assert found.error_code == 0, found
    with closing(Wire(_leader(bootstrap, partition))) as wire:
        record = Record(0, int(time.time() * 1_000) - HOUR_MS, None, b"hangs")
        batch = build_batch(
            [record], producer_id=found.producer_id, producer_epoch=found.producer_epoch, base_sequence=0,
            attributes=TRANSACTIONAL,
        )  # fmt: skip
        topic = TopicProduceData(name="orders", partition_data=[PartitionProduceData(index=partition, records=batch)])
        request = messages.ProduceRequest(
            transactional_id=transactional_id, acks=-1, timeout_ms=20_000, topic_data=[topic]
        )
        (result,) = wire.ask(request, 11, messages.ProduceResponse).responses[0].partition_responses
        assert result.error_code == 0, result
        return found.producer_id


def _coordinator(bootstrap: str, transactional_id: str) -> str:
    asked = messages.FindCoordinatorRequest(key=transactional_id, key_type=TRANSACTION)
    deadline_s = time.monotonic() + SETTLE_S
    with closing(Wire(_any(bootstrap))) as wire:
        while (found := wire.ask(asked, 3, messages.FindCoordinatorResponse)).error_code != 0:
            assert time.monotonic() < deadline_s, found
            time.sleep(0.05)
    return f"{found.host}:{found.port}"


def _leader(bootstrap: str, partition: int) -> str:
    asked = messages.MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    with closing(Wire(_any(bootstrap))) as wire:
        found = wire.ask(asked, 12, messages.MetadataResponse)
    (leader,) = (row.leader_id for row in found.topics[0].partitions if row.partition_index == partition)
    (address,) = (f"{each.host}:{each.port}" for each in found.brokers if each.node_id == leader)
    return address


def _any(bootstrap: str) -> str:
    return bootstrap.partition(",")[0]


def _broker_id(bootstrap: str) -> str:
    with closing(Wire(_any(bootstrap))) as wire:
        found = wire.ask(messages.DescribeClusterRequest(), 0, messages.DescribeClusterResponse)
        return str(found.brokers[0].broker_id)


def _tell(tools: Tools, commands: str, **names: str) -> str:
    names["BROKER"] = _broker_id(tools.bootstrap)
    told = ""
    for line in commands.split("\n")[1:-1]:
        arguments = [names.get(each, each) for each in line.split()]
        told += f"$ {line}\n" + _normalised(tools.transactions(*arguments))
    return told


def _normalised(printed: Printed) -> str:
    """Tables with sorted rows and without what depends on the clock; errors, which the tool prints twice, once."""
    head, *rows = ([cell.strip() for cell in line.split("\t")[:-1]] for line in printed.out.splitlines() or ["\t"])
    shown = sorted([SUBSTITUTES.get(name, _same)(cell) for name, cell in zip(head, row, strict=True)] for row in rows)
    text = "".join("\t".join(row) + "\n" for row in ([head, *shown] if head != [""] else []))
    errors = dict.fromkeys(line for line in printed.err.splitlines() if line and not line.startswith("SLF4J"))
    text += "".join(re.sub(r"broker \d+", "broker BROKER", line) + "\n" for line in errors)
    return text + (f"exit {printed.exit_code}\n" if printed.exit_code else "")


def _same(cell: str) -> str:
    return cell


def _time(cell: str) -> str:
    return cell if cell == "None" else "TIME"


SUBSTITUTES: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "Coordinator": lambda _: "BROKER",
        "CoordinatorId": lambda _: "BROKER",
        "ProducerId": lambda _: "PRODUCER",  # every broker has a block of them
        "CurrentTransactionStartTimeMs": _time,
        "TransactionDurationMs": _time,
        "LastTimestamp": _time,
    }
)


def main() -> None:
    with running_broker("apache", properties=PROPERTIES) as bootstrap, LineProcess(tool_host) as host:
        print(transcript(Tools(host, bootstrap)), end="")


if __name__ == "__main__":
    main()
