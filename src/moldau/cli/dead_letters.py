"""`moldau dead-letters`: look at records that a query refused, and send them back when what was wrong is mended."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from moldau.cli.actions import action_parser, run_action
from moldau.cli.completion.kinds import TOPIC
from moldau.cli.connection import add_connection_options
from moldau.cli.failures import OK, CommandFailed
from moldau.cli.output import TABLE, add_output_option, is_for_people, print_rows

if TYPE_CHECKING:
    from moldau.spark.dead_letters.sending_back import Opened

EXAMPLES = """\
examples:
  moldau dead-letters list orders.dead-letters
  moldau dead-letters list orders.dead-letters -o jsonl
  moldau dead-letters send-back orders.dead-letters       each once, to the topic it came from
"""
COLUMNS = ("topic", "partition", "offset", "reason", "value")
VALUE_CHARACTERS_MAX = 60


def main(arguments: list[str]) -> int:
    return run_action(parse(arguments))


def parse(arguments: list[str]) -> Namespace:
    parser = action_parser(
        "dead-letters",
        "Records that a query could not read: what they are, why they were refused, and their way back.",
        EXAMPLES,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, action, summary in (
        ("list", list_letters, "the letters in a topic"),
        ("send-back", send_letters_back, "send each to the topic it came from, once"),
    ):
        made = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        made.add_argument("topic", metavar=TOPIC, help="a topic of dead letters")
        made.set_defaults(action=action)
        add_connection_options(made)
        add_output_option(made)
    return parser.parse_args(arguments)


def list_letters(options: Namespace) -> int:
    from moldau.spark.clients.librdkafka import NoAnswer
    from moldau.spark.dead_letters.sending_back import letters

    check_topic(options)
    rows: list[dict[str, object]] = []
    others = 0
    try:
        for letter in letters(_settings(options), options.topic):
            if letter.opened is None:
                others += 1
            else:
                rows.append(row_of(letter.value, letter.opened, shortened=options.output == TABLE))
    except NoAnswer as wrong:
        raise CommandFailed(str(wrong)) from None
    print_rows(rows, columns=COLUMNS, output=options.output)
    if others:
        print(f"{others} records in {options.topic} are no dead letters", file=sys.stderr)
    return OK


def row_of(value: bytes | None, opened: Opened, *, shortened: bool) -> dict[str, object]:
    text = None if value is None else value.decode(errors="backslashreplace")
    if shortened and text is not None and len(text) > VALUE_CHARACTERS_MAX:
        text = f"{text[:VALUE_CHARACTERS_MAX]}…"
    return {
        "topic": opened.place.topic if opened.place else None,
        "partition": opened.place.partition if opened.place else None,
        "offset": opened.offset if opened.place else None,
        "reason": opened.reason,
        "query": opened.query,
        "value": text,
    }


def check_topic(options: Namespace) -> None:
    """Nobody should wait half a minute to hear that there is no cluster, or no such topic."""
    from confluent_kafka.admin import AdminClient

    from moldau.cli.librdkafka import client_config, cluster_metadata, open_client

    known = cluster_metadata(open_client(AdminClient, client_config(options)), options).topics
    if options.topic not in known:
        raise CommandFailed(f"there is no topic {options.topic}")


def send_letters_back(options: Namespace) -> int:
    from moldau.spark.clients.librdkafka import NoAnswer
    from moldau.spark.dead_letters.sending_back import send_back

    check_topic(options)
    try:
        sent = send_back(_settings(options), options.topic)
    except NoAnswer as wrong:
        raise CommandFailed(str(wrong)) from None
    if not is_for_people(options.output):
        counts = {"repeated": sent.repeated, "without_record": sent.without_record, "no_letters": sent.not_letters}
        print_rows([{"sent_back": dict(sent.by_topic), **counts}], columns=(), output=options.output)
        return OK
    for topic, count in sorted(sent.by_topic.items()):
        print(f"sent {count} back to {topic}")
    if not sent.total:
        print(f"nothing in {options.topic} that was not sent back before")
    if sent.repeated:
        print(f"{sent.repeated} letters are of records that were sent back just now")
    if sent.without_record:
        print(f"{sent.without_record} letters are rows of no single record, and stay")
    if sent.not_letters:
        print(f"{sent.not_letters} records in {options.topic} are no dead letters and stay")
    return OK


def _settings(options: Namespace) -> tuple[tuple[str, str], ...]:
    """Pairs of text, as the package takes them; it has an error callback of its own."""
    from moldau.cli.librdkafka import client_config

    return tuple((key, str(value)) for key, value in client_config(options).items() if not callable(value))
