"""`python -m moldau` is the `moldau` command: a broker's start goes to the node, every tool to the command line."""

from __future__ import annotations

import signal
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
        is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if is_heard:
            # An exception that comes inside one of the import's own callbacks is printed and lost; this can't be.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        from moldau.node.command import main as start

        if is_heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return start(arguments[1:])
    from moldau.cli.main import main as tool

    return tool(arguments)


if __name__ == "__main__":
    sys.exit(main())
