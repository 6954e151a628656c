"""DelegationTokenCommand by several users, and by a token: tokens come, are renewed and expire, and much is refused.

`transcripts/tokens.txt` holds what Apache Kafka's broker makes the tool print, and
`python -m tests.suites.token_commands` prints it anew.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path

from tests.clients.drivers import LineProcess
from tests.clients.toolchains import tool_host
from tests.security.token_brokers import (
    PASSWORDS,
    PLAIN_MODULE,
    SCRAM_MODULE,
    Addresses,
    logged_in,
    password_of,
    running_with_tokens,
)
from tests.suites.tools import TOKENS, Host, Printed, Tools

DESCRIBE = "DescribeDelegationToken"
# Who asks, and what. Tokens have the names of their order.
COMMANDS = """
alice --create --max-life-time-period -1 --renewer-principal User:bob
alice --create --max-life-time-period 7200000
alice --describe
alice --describe --owner-principal User:alice
bob --describe --owner-principal User:alice
erin --describe --owner-principal User:alice
bob --renew --renew-time-period 3600000 --hmac HMAC-0
erin --renew --renew-time-period -1 --hmac HMAC-0
alice --renew --renew-time-period -1 --hmac HMAC-1
alice --renew --renew-time-period -1 --hmac bm9uZQ==
erin --expire --expiry-time-period -1 --hmac HMAC-0
bob --expire --expiry-time-period 18000000 --hmac HMAC-0
erin --create --max-life-time-period -1 --owner-principal User:alice
alice --create --max-life-time-period -1 --renewer-principal Group:staff
token --create --max-life-time-period -1
token --describe --owner-principal User:alice
token --renew --renew-time-period -1 --hmac HMAC-0
token --expire --expiry-time-period -1 --hmac HMAC-0
nobody --describe --owner-principal User:alice
alice --describe --owner-principal User:alice
alice --expire --expiry-time-period -1 --hmac HMAC-0
alice --renew --renew-time-period -1 --hmac HMAC-0
alice --expire --expiry-time-period -1 --hmac HMAC-1
alice --describe --owner-principal User:alice
"""
LEFT_OUT = re.compile(r"\s*at |\s*\.\.\. |SLF4J")  # of traces, and about logging
CREATED = re.compile(r"Created delegation token with tokenId : (\S+)")
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


class Desk:
    """The tool in the hands of each user."""

    def __init__(self, host: Host, addresses: Addresses, folder: Path) -> None:
        self.host, self.addresses, self.folder = host, addresses, folder
        self.tokens: list[str] = []
        self.ended = 0

    def transcript(self) -> str:
        told = ""
        for line in COMMANDS.strip().splitlines():
            who, *words = line.split()
            told += f"$ {line}\n{self.plainly(self.run(who, words))}"
        return told

    def run(self, who: str, words: list[str]) -> Printed:
        bootstrap = self.addresses.plain if who == "nobody" else self.addresses.secured
        said = [password_of(self.tokens[int(each[-1])]) if each.startswith("HMAC-") else each for each in words]
        done = Tools(self.host, bootstrap).run(TOKENS, "--command-config", self.settings(who), *said)
        self.tokens += CREATED.findall(done.out)
        self.ended += "--expire" in words and "-1" in words and done.exit_code == 0
        self.wait()
        return done

    def wait(self) -> None:
        """Apache Kafka's broker learns a moment later what its controller has said."""
        deadline_s = time.monotonic() + 20
        with closing(logged_in(self.addresses.secured, "alice")) as peer:
            while len(found := peer.ask(DESCRIBE, 3, owners=None)["tokens"]) != len(self.tokens) - self.ended:  # type: ignore[index]
                assert time.monotonic() < deadline_s, found

    def settings(self, who: str) -> str:
        lines = ["security.protocol=PLAINTEXT"]
        if who != "nobody":
            lines = ["security.protocol=SASL_PLAINTEXT", *self.login(who)]
        path = self.folder / f"{who}.properties"
        path.write_text("\n".join(lines))
        return str(path)

    def login(self, who: str) -> list[str]:
        if who == "token":
            token_id = self.tokens[0]
            login = f'username="{token_id}" password="{password_of(token_id)}" tokenauth="true"'
            return ["sasl.mechanism=SCRAM-SHA-512", f"sasl.jaas.config={SCRAM_MODULE} required {login};"]
        login = f'username="{who}" password="{PASSWORDS[who]}"'
        return ["sasl.mechanism=PLAIN", f"sasl.jaas.config={PLAIN_MODULE} required {login};"]

    def plainly(self, done: Printed) -> str:
        """Tokens are shown in the order of a hash map."""
        said = [line for line in f"{done.out}\n{done.err}".splitlines() if line.strip() and not LEFT_OUT.match(line)]
        for number, token_id in enumerate(self.tokens):
            said = [each.replace(password_of(token_id), f"HMAC-{number}") for each in said]
            said = [each.replace(token_id, f"TOKEN-{number}") for each in said]
        text = "".join(f"{DATE.sub(_hours, ' '.join(each.split()))}\n" for each in sorted(said))
        return text + (f"exit {done.exit_code}\n" if done.exit_code else "")


def _hours(date: re.Match[str]) -> str:
    """From now: the tool prints the local time."""
    left = datetime.fromisoformat(date[0]) - datetime.now()
    return f"(in {round(left.total_seconds() / 3_600)} h)"


def transcript(host: Host, addresses: Addresses) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return Desk(host, addresses, Path(folder)).transcript()


def main() -> None:
    with running_with_tokens("apache") as addresses, LineProcess(tool_host) as host:
        sys.stdout.write(transcript(host, addresses))


if __name__ == "__main__":
    main()
