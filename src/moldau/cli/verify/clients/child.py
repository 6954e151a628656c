"""A client's process: told its settings on standard input, and gone when that ends, however its owner did.

Settings come that way because command lines are read by anyone.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence

PRODUCER, CONSUMER, COPIER, OPEN_TRANSACTION = "producer", "consumer", "copier", "open-transaction"
MODULES: Mapping[str, str] = {
    PRODUCER: "moldau.cli.kafka.commands.verifiable_producer",
    CONSUMER: "moldau.cli.kafka.commands.verifiable_consumer",
    COPIER: "moldau.cli.verify.clients.copying",
    OPEN_TRANSACTION: "moldau.cli.verify.clients.open_transaction",
}
ORPHANED = 3


def main(arguments: Sequence[str]) -> int:
    settings: Mapping[str, str] = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_owner, daemon=True).start()
    # What the user's profiles say is in the settings already, or is about another cluster.
    for name in [each for each in os.environ if each.startswith("MOLDAU_")]:
        del os.environ[name]
    os.environ["XDG_CONFIG_HOME"] = "/nonexistent"
    os.chdir("/")
    from moldau.cli.main import command_of, run_tool

    name, *words = arguments
    given = [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]
    return run_tool("", lambda: command_of(MODULES[name])([*words, *given]))


def _end_with_owner() -> None:
    sys.stdin.read()
    os._exit(ORPHANED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
