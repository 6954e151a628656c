"""`moldau cluster`: the cluster's id, its endpoints, and brokers that will not come back."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from moldau.cli.failures import OK, UsageError
from moldau.cli.kafka.bootstrap import open_bootstrap
from moldau.client.cluster import check
from moldau.client.connection import Unsupported
from moldau.wire.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from moldau.wire.messages.describe_cluster import DescribeClusterBroker

NO_NAME_WIDTH, NO_RACK_WIDTH = 100, 10


def _described(options: Namespace, *, fenced: bool = False) -> DescribeClusterResponse:
    with open_bootstrap(options) as client:
        request = DescribeClusterRequest(endpoint_type=client.kind, include_fenced_brokers=fenced)
        answer = client.ask(request, DescribeClusterResponse)
    check(answer.error_code, answer.error_message)
    return answer


def print_cluster_id(options: Namespace) -> int:
    print(f"Cluster ID: {_described(options).cluster_id}")
    return OK


def unregister_broker(options: Namespace) -> int:
    request = UnregisterBrokerRequest(broker_id=options.id)
    with open_bootstrap(options) as client:
        try:
            answer = client.ask_controller(request, UnregisterBrokerResponse, codes=lambda found: [found.error_code])
        except Unsupported:
            print("The target cluster does not support the broker unregistration API.")
            return OK
    check(answer.error_code, answer.error_message)
    print(f"Broker {options.id} is no longer registered.")
    return OK


def list_endpoints(options: Namespace) -> int:
    of_controllers = options.bootstrap_controller is not None
    if of_controllers and options.include_fenced_brokers:
        raise UsageError("The option --include-fenced-brokers is only supported with --bootstrap-server option")
    nodes = sorted(_described(options, fenced=options.include_fenced_brokers).brokers, key=lambda node: node.broker_id)
    rows = [_row(node, of_controllers=of_controllers) for node in nodes]
    heads = ["ID", "HOST", "PORT", "RACK", *([] if of_controllers else ["STATE"]), "ENDPOINT_TYPE"]
    host = max((len(node.host) for node in nodes), default=NO_NAME_WIDTH)
    rack = max((len(node.rack) for node in nodes if node.rack), default=NO_RACK_WIDTH)
    widths = [10, host, 10, rack, *([] if of_controllers else [10]), 15]
    for row in [heads, *rows]:
        print(_line(row, widths))
    return OK


def _row(node: DescribeClusterBroker, *, of_controllers: bool) -> list[str]:
    where = [str(node.broker_id), node.host, str(node.port), node.rack or "null"]
    if of_controllers:
        return [*where, "controller"]
    return [*where, "fenced" if node.is_fenced else "unfenced", "broker"]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
