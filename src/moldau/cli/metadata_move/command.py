"""The command line of `moldau metadata-move`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.parsing import Parser

EXAMPLES = """\
examples:
  moldau metadata-move --data-dir ./moldau-data --zookeeper-connect h1:2181,h2:2181,h3:2181/moldau

Stop all brokers first, and start them with the same zookeeper.connect (or etcd.connect) afterwards. A move that was
interrupted goes on where it ended when it is started again. The file that was moved is kept beside the data, with
.moved behind its name.
"""


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.metadata_move.moving import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau metadata-move",
        description="Move the metadata of the brokers of this machine into ZooKeeper or etcd.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--data-dir", required=True, metavar="DIR", help="the log directory that has the metadata")
    service = parser.add_mutually_exclusive_group(required=True)
    for name in ("zookeeper", "etcd"):
        where = "host:port[,host:port...][/chroot], without a cluster"
        service.add_argument(f"--{name}-connect", metavar="HOSTS", help=where)
    parser.add_argument(
        "--properties", metavar="FILE", help="the brokers' server.properties, for a service that wants TLS or a login"
    )
    return parser.parse_args(arguments)
