"""`scripts/faults`: one run of the live fault harness, and its judgement."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import msgspec

from tests import apache_kafka
from tests.faults.cluster.cluster import Shape
from tests.faults.cluster.network import inside
from tests.faults.cluster.run import FINAL_S_MAX, HEALED_S, RESULT, Options, Run, report
from tests.faults.cluster.schedule import ANY
from tests.store import ensemble


def fetch(store: str, broker: str) -> None:
    """What a new machine does not have yet: a network of its own has no way to it."""
    if store == "zookeeper":
        ensemble.jars()
    if broker == "apache":
        apache_kafka.libs()


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/faults", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="how long faults go on (default: 300)")
    parser.add_argument("--seed", type=int, default=7, help="which faults, on whom and for how long (default: 7)")
    parser.add_argument("--broker", choices=("moldau", "apache"), default="moldau", help="whose (default: moldau)")
    parser.add_argument("--store", choices=("sqlite", "zookeeper"), default="sqlite", help="of Moldau's metadata")
    parser.add_argument("--brokers", type=int, default=3, help="how many (default: 3)")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="faults with this in their names")
    parser.add_argument("--role", action="append", default=[], choices=ANY, help="whom faults strike (default: any)")
    parser.add_argument("--session-timeout", type=float, default=9.0, metavar="S", help="of brokers (default: 9)")
    parser.add_argument("--sends", type=float, default=100.0, metavar="N", help="a second, of each of four producers")
    parser.add_argument(
        "--final", type=float, default=FINAL_S_MAX, metavar="S", help="how long the last polls may take"
    )
    parser.add_argument("--healed", type=float, default=HEALED_S, metavar="S", help="of peace before the last polls")
    parser.add_argument("--planted", default="", help="a bug to plant in the brokers (tests.faults.cluster.planted)")
    parser.add_argument("--secured", action="store_true", help="TLS, logins and ACLs everywhere, to ZooKeeper too")
    parser.add_argument("--directory", type=Path, help="keep histories, logs and data here")
    options = parser.parse_args()
    if options.secured and options.broker != "moldau":
        parser.error("--secured is for Moldau's brokers")
    fetch(options.store, options.broker)
    inside("tests.faults.cluster", sys.argv[1:])
    shape = Shape(
        kind=options.broker, brokers=options.brokers, store=options.store, planted=options.planted,
        session_timeout_s=options.session_timeout, is_secured=options.secured,
    )  # fmt: skip
    directory = options.directory or Path(tempfile.mkdtemp(prefix="moldau-faults-"))
    directory.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # undone as after Ctrl-C
    result = Run(
        Options(
            shape, options.seconds, options.seed, directory, tuple(options.only), tuple(options.role),
            options.sends, options.final, options.healed,
        )
    ).run()  # fmt: skip
    text = report(result)
    print(text)
    if options.directory is not None:
        (directory / "report.txt").write_text(text + "\n")
        (directory / RESULT).write_bytes(msgspec.json.encode(result.summary))
    if options.directory is None and result.has_passed:
        shutil.rmtree(directory)
    else:
        print(f"histories, logs and data are in {directory}")
    return 0 if result.has_passed else 1


if __name__ == "__main__":
    sys.exit(main())
