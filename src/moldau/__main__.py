"""`python -m moldau` is the `moldau` command: a broker's start goes to the node, every tool to the command line."""

from __future__ import annotations

import sys

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
    from moldau.cli.main import main as tool

    return tool(arguments)


if __name__ == "__main__":
    sys.exit(main())
