"""`moldau rest`: Confluent's REST API, v2 and v3, for any cluster, and topics as streams over HTTP."""

from __future__ import annotations

import logging
from argparse import Namespace
from pathlib import Path

from moldau.cli.connection import add_connection_options
from moldau.cli.failures import UsageError
from moldau.cli.parsing import Parser, log_level, whole
from moldau.cli.rest.serving import serve
from moldau.cli.settling import TIMEOUT_S
from moldau.core.logs import LOG_FORMATS, LOG_LEVELS, configure_logging

EXAMPLES = """\
examples:
  moldau rest                                        the cluster on localhost:9092; answers on port 8082
  moldau rest -b kafka-1:9092 --port 8083 --host 0.0.0.0
  moldau rest --registry http://localhost:8081       records in Avro, JSON Schema and Protobuf
  moldau rest --config kafka-rest.properties         with Confluent's keys
  moldau rest --authentication passthrough -X security.protocol=sasl_ssl -X sasl.mechanism=SCRAM-SHA-256
  curl localhost:8082/v3/clusters
  curl -N -H 'Accept: text/event-stream' 'localhost:8082/v3/clusters/CLUSTER/topics/orders/records?from=beginning'

What it answers: docs/guides/rest-proxy.md, and /openapi.json. It needs: pip install 'moldau[registry]'.
"""


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        configure_logging(level=options.log_level, form=options.log_format, path=options.log_file)
    except OSError as wrong:
        raise UsageError(f"cannot write {options.log_file}: {wrong.strerror}") from None
    logging.captureWarnings(capture=True)
    if not options.access_log:
        logging.getLogger("moldau.web.access").setLevel(logging.WARNING)
    return serve(options)


def parse(arguments: list[str]) -> Namespace:
    description = "Topics, records, groups and configurations of any Kafka over HTTP, as Confluent's REST proxy does."
    parser = Parser(prog="moldau rest", description=description, epilog=EXAMPLES)
    parser.add_argument("--port", type=whole(0, 65_535, "port"), help="where to answer (default: 8082; 0: a free one)")
    parser.add_argument("--host", help="the address to answer at (default: 127.0.0.1; 0.0.0.0: all of this machine)")
    parser.add_argument("--config", metavar="FILE", help="kafka-rest.properties, with Confluent's keys")
    parser.add_argument("--registry", metavar="URL", help="of the schema registry (default: none)")
    parser.add_argument(
        "--authentication",
        metavar="METHOD",
        help="none, basic (users of --users), or passthrough (the cluster's own users log in with HTTP Basic)",
    )
    parser.add_argument("--users", metavar="FILE", help="who may come in: NAME: scrypt:..., ROLE... a line")
    parser.add_argument(
        "--ready-file", metavar="FILE", type=Path, help="written when it answers: a JSON object with url and pid"
    )
    parser.add_argument("--stop-with-stdin", action="store_true", help="end when standard input does, for owners")
    parser.add_argument("--access-log", action="store_true", help="a line of the log for each request")
    parser.add_argument("--log-level", metavar="LEVEL", type=log_level, default="WARNING", help=", ".join(LOG_LEVELS))
    parser.add_argument(
        "--log-format", choices=LOG_FORMATS, default="text", help="json is one object a line (default: text)"
    )
    parser.add_argument(
        "--log-file", metavar="FILE", type=Path, help="append the log to this file (default: standard error)"
    )
    add_connection_options(parser)
    parser.set_defaults(timeout=TIMEOUT_S)
    return parser.parse_args(arguments)
