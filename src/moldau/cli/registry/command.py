"""`moldau registry`: schemas over HTTP, kept in a topic of any Kafka cluster, with the API of Confluent's registry."""

from __future__ import annotations

import getpass
import logging
import sys
from argparse import Namespace
from pathlib import Path

from moldau.cli.completion.kinds import TOPIC
from moldau.cli.connection import add_connection_options
from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.parsing import Parser, log_level, whole
from moldau.core.logs import LOG_FORMATS, LOG_LEVELS, configure_logging
from moldau.web.extra import is_installed

EXAMPLES = """\
examples:
  moldau registry                                      in front of localhost:9092; answers on localhost:8081
  moldau registry -b kafka-1:9092 --host 0.0.0.0       reachable from elsewhere
  moldau registry --config schema-registry.properties  the keys of Confluent's registry
  moldau registry --hash-password >> users             a line for --users; put NAME: before it and ", ROLE" behind
  moldau registry --users users --port 8443 --tls-certificate server.pem --tls-key server.key
  moldau registry --authentication passthrough --command-config client.properties
  curl localhost:8081/subjects

Several instances of one cluster elect one that writes: docs/guides/schema-registry.md.
"""


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if not is_installed():
        raise CommandFailed("it needs: pip install 'moldau[registry]'")
    if options.hash_password:
        return hash_password()
    try:
        configure_logging(level=options.log_level, form=options.log_format, path=options.log_file)
    except OSError as wrong:
        raise UsageError(f"cannot write {options.log_file}: {wrong.strerror}") from None
    logging.captureWarnings(capture=True)
    if not options.access_log:
        logging.getLogger("moldau.web.access").setLevel(logging.WARNING)
    from moldau.cli.registry.serving import serve
    from moldau.cli.registry.settings import settled

    return serve(options, settled(options))


def parse(arguments: list[str]) -> Namespace:
    description = "A schema registry with the API of Confluent's, for any Kafka cluster."
    parser = Parser(prog="moldau registry", description=description, epilog=EXAMPLES)
    parser.add_argument("--port", type=whole(0, 65_535, "port"), help="where to answer (default: 8081; 0: a free one)")
    parser.add_argument("--host", help="the address to answer at (default: 127.0.0.1; 0.0.0.0: all of this machine)")
    parser.add_argument("--config", metavar="FILE", help="properties, by the names of Confluent's registry")
    parser.add_argument("--topic", metavar=TOPIC, help="where schemas are kept (default: _schemas)")
    parser.add_argument("--users", metavar="FILE", help="users and passwords for logins by HTTP Basic")
    parser.add_argument(
        "--authentication",
        metavar="METHOD",
        help="none, basic (users of --users), or passthrough (the cluster's own users log in with HTTP Basic)",
    )
    parser.add_argument("--tls-certificate", metavar="FILE", help="PEM: answer over https, with this certificate")
    parser.add_argument("--tls-key", metavar="FILE", help="PEM: its private key")
    parser.add_argument("--tls-client-ca", metavar="FILE", help="PEM: clients need a certificate of this authority")
    parser.add_argument(
        "--ready-file", metavar="FILE", type=Path, help="written when it answers: a JSON object with url and pid"
    )
    parser.add_argument("--stop-with-stdin", action="store_true", help="end when standard input does, for owners")
    parser.add_argument("--hash-password", action="store_true", help="ask for a password, print its hash, and end")
    parser.add_argument("--access-log", action="store_true", help="a line of the log for each request")
    parser.add_argument("--log-level", metavar="LEVEL", type=log_level, default="WARNING", help=", ".join(LOG_LEVELS))
    parser.add_argument("--log-format", choices=LOG_FORMATS, default="text", help="json is one object a line")
    parser.add_argument("--log-file", metavar="FILE", type=Path, help="append the log to this file")
    add_connection_options(parser)
    return parser.parse_args(arguments)


def hash_password() -> int:
    from moldau.web.logins import hashed

    password = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not password:
        raise UsageError("--hash-password: no password")
    print(hashed(password))
    return OK
