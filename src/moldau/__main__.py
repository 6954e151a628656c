"""`python -m moldau` is the `moldau` command: a broker's start goes to the node, every tool to the command line."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser

INTERRUPTED = 130  # Ctrl-C, as shells count it


def main() -> int:
    try:
        return run(sys.argv[1:])
    except KeyboardInterrupt:  # while a side was being imported: each knows how to end once it runs
        return INTERRUPTED


def run(arguments: list[str]) -> int:
    # Each side imports what the other must not pay for: a broker has no client library, a tool has no broker.
    if arguments[:1] == ["start"]:
        from moldau.node.command import main as start
        from moldau.node.ending import end

        return end(start(arguments[1:]))
    if arguments[:1] == ["complete-line"]:
        from moldau.cli.completion.answering import main as answer

        return answer(arguments[1:], parser_of)
    from moldau.cli.main import main as tool

    return tool(arguments)


def parser_of(name: str) -> ArgumentParser:
    """Of `start`, or of the tool that this module is."""
    from moldau.cli.completion.answering import START, parser_of_tool

    if name != START:
        return parser_of_tool(name)
    from moldau.node.command import command_parser

    return command_parser()


if __name__ == "__main__":
    sys.exit(main())
