"""`moldau dead-letters`: look at records that a query refused, and send them back when what was wrong is mended."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable

from moldau.cli.connection import add_connection_options, client_config
from moldau.cli.failures import OK, CommandFailed
from moldau.cli.output import add_output_option, print_rows

EXAMPLES = """\
examples:
  moldau dead-letters list orders.dead-letters
  moldau dead-letters list orders.dead-letters -o jsonl
  moldau dead-letters send-back orders.dead-letters       each once, to the topic it came from
"""
COLUMNS = ("topic", "partition", "offset", "reason", "value")
VALUE_CHARACTERS_MAX = 60


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    action: Callable[[Namespace], int] = options.action
    return action(options)


def parse(arguments: list[str]) -> Namespace:
    parser = ArgumentParser(
        prog="moldau dead-letters",
        description="Records that a query could not read: what they are, why they were refused, and their way back.",
        epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, action, summary in (
        ("list", list_letters, "the letters in a topic"),
        ("send-back", send_letters_back, "send each to the topic it came from, once"),
    ):
        made = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        made.add_argument("topic", metavar="TOPIC", help="a topic of dead letters")
        made.set_defaults(action=action)
        add_connection_options(made)
        if name == "list":
            add_output_option(made)
    return parser.parse_args(arguments)


def list_letters(options: Namespace) -> int:
    from moldau.spark.sending_back import letters

    rows = []
    for letter in letters(_settings(options), options.topic):
        value = (letter.value or b"").decode(errors="backslashreplace")
        rows.append(
            {
                "topic": letter.opened.place.topic,
                "partition": letter.opened.place.partition,
                "offset": letter.told["offset"],
                "reason": letter.told["reason"],
                "query": letter.told["query"],
                "value": value if len(value) <= VALUE_CHARACTERS_MAX else f"{value[:VALUE_CHARACTERS_MAX]}…",
            }
        )
    print_rows(rows, columns=COLUMNS, output=options.output)
    return OK


def send_letters_back(options: Namespace) -> int:
    from moldau.spark.clients import NoAnswer
    from moldau.spark.sending_back import send_back

    try:
        sent = send_back(_settings(options), options.topic)
    except NoAnswer as wrong:
        raise CommandFailed(str(wrong)) from None
    for topic, count in sorted(sent.by_topic.items()):
        print(f"sent {count} back to {topic}")
    if not sent.total:
        print(f"nothing in {options.topic} that was not sent back before")
    if sent.not_letters:
        print(f"{sent.not_letters} records in {options.topic} are no dead letters and stay")
    return OK


def _settings(options: Namespace) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(value)) for key, value in client_config(options).items())
