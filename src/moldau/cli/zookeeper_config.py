"""`moldau zookeeper-config`: the files that the servers of a ZooKeeper ensemble need, and a look at one that runs."""

from __future__ import annotations

import re
import socket
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.output import TABLE, add_output_option, print_rows
from moldau.cli.parsing import Parser
from moldau.core.host_names import HOST_NAME_EXPECTED, is_host_name

CLIENT_PORT, PEER_PORT, ELECTION_PORT = 2181, 2888, 3888
PORT_MAX = 65_535
ANSWER_S_MAX = 5.0
ANSWER_BYTES_MAX = 65_536
SERVERS_MAX = 255  # ZooKeeper's numbers for servers are 1 to 255
SETTINGS = {"tickTime": 2000, "initLimit": 20, "syncLimit": 5}
COLUMNS = ("server", "state", "version")
SERVES = ("leader", "follower", "observer", "standalone")

EXAMPLES = """\
examples:
  moldau zookeeper-config --servers h1,h2,h3                   writes zookeeper/h1/zoo.cfg, zookeeper/h1/myid, ...
  moldau zookeeper-config --servers h1,h2,h3 --check           asks the servers that run how they are

Copy each zoo.cfg to its host's configuration of ZooKeeper, and myid into the data directory.
"""
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class Server:
    """`number` is its myid; `nth` counts those on the same host, whose ports follow one another."""

    number: int
    host: str
    client_port: int
    nth: int

    def __str__(self) -> str:
        return f"{self.host}:{self.client_port}"

    @property
    def folder(self) -> str:
        name = self.host.strip("[]").replace(":", "-")
        return f"{name}-{self.number}" if self.nth else name


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    servers = parse_servers(options.servers)
    return check(servers, output=options.output) if options.check else write(servers, options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau zookeeper-config",
        description="Write the configuration of a ZooKeeper ensemble for Moldau, or check one that runs.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--servers", required=True, metavar="HOSTS", help="host[:port] of each, with commas between")
    parser.add_argument("--dir", default="zookeeper", metavar="DIR", help="where to write (default: ./zookeeper)")
    parser.add_argument(
        "--data-dir", default="/var/lib/zookeeper", metavar="DIR", help="dataDir of the servers (default: %(default)s)"
    )
    parser.add_argument("--check", action="store_true", help="write nothing, ask the servers how they are")
    add_output_option(parser)
    return parser.parse_args(arguments)


def parse_servers(text: str) -> list[Server]:
    servers: list[Server] = []
    on_host: Counter[str] = Counter()
    for number, part in enumerate(re.split("[,;]", text), start=1):
        match = _SERVER.fullmatch(part.strip())
        if match is None or not 0 < int(match[2] or CLIENT_PORT) <= PORT_MAX:
            raise UsageError(f"Invalid value {text!r} for --servers: expected host[:port][,host[:port]...]")
        if not is_host_name(match[1]):
            raise UsageError(f"Invalid value {match[1]!r} for --servers: expected {HOST_NAME_EXPECTED}")
        host = match[1].lower()  # names of hosts are the same in any case
        server = Server(number, host, int(match[2] or CLIENT_PORT), on_host[host])
        for other in servers:
            if str(other) == str(server):
                raise UsageError(f"Invalid value {text!r} for --servers: {server} is there twice")
            if other.folder == server.folder:
                raise UsageError(
                    f"Invalid value {text!r} for --servers: {other} and {server} would share the folder "
                    f"{server.folder}; name one of the hosts by its address"
                )
        servers.append(server)
        on_host[host] += 1
    if len(servers) > SERVERS_MAX:
        raise UsageError(f"--servers names {len(servers)} servers; ZooKeeper has {SERVERS_MAX} at most")
    return servers


def write(servers: Sequence[Server], options: Namespace) -> int:
    folder = Path(options.dir)
    files = {
        folder / server.folder / name: text
        for server in servers
        for name, text in (("zoo.cfg", config(server, servers, options.data_dir)), ("myid", f"{server.number}\n"))
    }
    for path, text in files.items():
        if path.exists() and path.read_text() != text:
            raise CommandFailed(f"{path} is there and differs; move it away, or choose another --dir")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(path)
    if len(servers) % 2 == 0:
        print(f"note: {len(servers)} servers survive the loss of {_losses(servers)}, as {len(servers) - 1} do")
    return OK


def config(server: Server, servers: Sequence[Server], data_dir: str) -> str:
    lines: dict[str, object] = {
        **SETTINGS,
        "dataDir": data_dir if server.nth == 0 else f"{data_dir}-{server.number}",
        "clientPort": server.client_port,
        "autopurge.snapRetainCount": 3,
        "autopurge.purgeInterval": 24,
        "4lw.commands.whitelist": "srvr,mntr,ruok",
        "admin.enableServer": "false",
        **{
            f"server.{each.number}": f"{each.host}:{PEER_PORT + each.nth}:{ELECTION_PORT + each.nth}"
            for each in servers
        },
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def check(servers: Sequence[Server], *, output: str) -> int:
    """Fails unless one leads and a majority serves: then the ensemble takes writes."""
    rows = [{"server": str(server), **state(server)} for server in servers]
    print_rows(rows, columns=COLUMNS, output=output)
    states = [row["state"] for row in rows]
    serving = sum(each in SERVES for each in states)
    leaders = states.count("leader") + states.count("standalone")
    if leaders > 1:
        raise CommandFailed(f"{leaders} servers lead: they are not one ensemble; compare their server.N lines")
    if leaders == 0 or serving <= len(servers) // 2:
        raise CommandFailed(f"{serving} of {len(servers)} servers serve; a majority with a leader is needed")
    if output == TABLE:
        print(
            f"{serving} of {len(servers)} servers serve; {_losses(servers) - len(servers) + serving} more may be lost"
        )
    return OK


def state(server: Server) -> dict[str, str]:
    """By the command `srvr`, which every ZooKeeper answers unless it was forbidden."""
    try:
        with socket.create_connection(
            (server.host.strip("[]"), server.client_port), timeout=ANSWER_S_MAX
        ) as connection:
            connection.sendall(b"srvr")
            answer = connection.makefile("rb").read(ANSWER_BYTES_MAX).decode(errors="replace")
    except OSError as wrong:
        return {"state": f"no answer: {wrong.strerror or wrong}", "version": ""}
    fields = dict(line.split(": ", 1) for line in answer.splitlines() if ": " in line)
    version = fields.get("Zookeeper version", "").partition("-")[0]
    return {"state": fields.get("Mode") or _shortened(answer), "version": version}


def _shortened(answer: str) -> str:
    return answer.strip().splitlines()[0][:80] if answer.strip() else "no answer to srvr"


def _losses(servers: Sequence[Server]) -> int:
    return (len(servers) - 1) // 2
