"""ConfigCommand on users, clients and ips: quotas that are set, shown and taken away, and what is wrong with some.

`transcripts/quotas-*.txt` hold what Apache Kafka's broker makes the tool print, and
`python -m tests.suites.quota_commands CHAPTER` prints one anew.
"""

from __future__ import annotations

import re
import sys
from types import MappingProxyType

from tests.brokers import running_broker
from tests.clients.drivers import LineProcess
from tests.clients.toolchains import tool_host
from tests.suites.tools import CONFIGS, Printed, Tools

USERS = """
--describe --entity-type users
--describe --entity-type users --entity-name alice
--alter --entity-type users --entity-name alice --add-config producer_byte_rate=1048576,consumer_byte_rate=2097152
--describe --entity-type users --entity-name alice
--alter --entity-type users --entity-name alice --add-config request_percentage=12.5
--describe --entity-type users --entity-name alice
--alter --entity-type users --entity-default --add-config controller_mutation_rate=0.5
--describe --entity-type users
--describe --user alice
--alter --entity-type users --entity-name alice --delete-config consumer_byte_rate,request_percentage
--describe --entity-type users --entity-name alice
--alter --entity-type users --entity-name alice --delete-config producer_byte_rate
--describe --entity-type users
"""
CLIENTS = """
--describe --entity-type clients
--describe --entity-type users --entity-default
--alter --entity-type users --entity-default --add-config controller_mutation_rate=0.5
--describe --entity-type users --entity-default
--describe --user-defaults
--alter --user alice --client app --add-config producer_byte_rate=7
--alter --entity-type users --entity-name alice --entity-type clients --entity-default --add-config producer_byte_rate=8
--alter --entity-type users --entity-default --entity-type clients --entity-default --add-config producer_byte_rate=9
--describe --entity-type users --entity-name alice --entity-type clients --entity-name app
--describe --entity-type users --entity-name alice --entity-type clients
--describe --entity-type users --entity-type clients
--alter --entity-type clients --entity-name app --add-config consumer_byte_rate=5,request_percentage=12.5
--alter --entity-type clients --entity-default --add-config consumer_byte_rate=6
--describe --entity-type clients
--describe --client app
--describe --client-defaults
--alter --entity-type users --entity-name alice --add-config connection_creation_rate=1
--alter --entity-type users --entity-name alice --add-config producer_byte_rate=0
--alter --entity-type users --entity-name alice --add-config producer_byte_rate=fast
--alter --entity-type users --entity-name alice --add-config producer_byte_rate=1.5
--alter --entity-type users --entity-name alice --delete-config unknown
--alter --user alice --client app --delete-config producer_byte_rate
--alter --entity-type clients --entity-name app --delete-config consumer_byte_rate
--describe --entity-type users --entity-type clients
--describe --entity-type clients
"""
IPS = """
--describe --entity-type ips
--alter --entity-type ips --entity-name 10.1.2.3 --add-config connection_creation_rate=100
--alter --entity-type ips --entity-default --add-config connection_creation_rate=1000
--describe --entity-type ips
--describe --ip 10.1.2.3
--describe --ip-defaults
--alter --entity-type ips --entity-name 10.1.2.3 --add-config producer_byte_rate=1
--alter --entity-type ips --entity-name no-such-host.invalid --add-config connection_creation_rate=1
--alter --entity-type ips --entity-default --delete-config connection_creation_rate
--describe --entity-type ips
"""
CHAPTERS = MappingProxyType({"users": USERS, "clients": CLIENTS, "ips": IPS})
LEFT_OUT = re.compile(r"\s*at |\s*\.\.\. |SLF4J")  # of traces, and about logging
ADDRESS = re.compile(r"127\.0\.0\.1:\d+(,127\.0\.0\.1:\d+)*")  # of one broker, or of several


def transcript(tools: Tools, chapter: str) -> str:
    """Everything the commands print on a fresh broker, in a form that is the same each time."""
    told = ""
    for line in CHAPTERS[chapter].strip().splitlines():
        told += f"$ {line}\n{_printed(tools.run(CONFIGS, *line.split()))}"
    return told


def _printed(done: Printed) -> str:
    """Entities are shown in the order of a hash map."""
    said = [line for line in f"{done.out}\n{done.err}".splitlines() if line.strip() and not LEFT_OUT.match(line)]
    text = "".join(f"{ADDRESS.sub('HOST', line.rstrip())}\n" for line in sorted(said))
    return text + (f"exit {done.exit_code}\n" if done.exit_code else "")


def main() -> None:
    with running_broker("apache") as bootstrap, LineProcess(tool_host) as host:
        sys.stdout.write(transcript(Tools(host, bootstrap), sys.argv[1]))


if __name__ == "__main__":
    main()
