"""`moldau up`: a broker, a schema registry and a REST proxy together, until Ctrl-C ends all of them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from moldau.cli.failures import OK, CommandFailed
from moldau.cli.parsing import Parser, whole
from moldau.embedded.process import STOP_S_MAX, BrokerFailed, Ready, await_ready, end_process
from moldau.embedded.running import SERVICE_START_S_MAX, check_services
from moldau.embedded.security import ClientSettings
from moldau.embedded.services import REGISTRY, REST, Services

if TYPE_CHECKING:
    from moldau.security.starter.clients import Login

EXAMPLES = """\
examples:
  moldau up                                  localhost: broker 9092, schema registry 8081, REST proxy 8082
  moldau up --data-dir /var/lib/moldau       and whatever else `moldau start` has for the broker
  moldau up --brokers 3                      a cluster of three
  moldau up --secure                         TLS and logins everywhere; the admin's password opens all of them
  moldau up --port 0 --registry-port 0 --without rest
"""
BROKER_START_S_MAX = 3_600.0  # recovery after a crash of the machine reads every log
LOOK_S = 0.1
START = {
    "port": "PORT", "data-dir": "DIR", "brokers": "N", "metrics": "[HOST:]PORT", "log-level": "LEVEL",
    "log-format": "FORMAT", "log-file": "FILE",
}  # fmt: skip
REPEATED = ("override", "add-scram")
FLAGS = ("secure", "no-kafka-environment", "accept-lost-log-dirs")
NAMES = {REGISTRY: "registry", REST: "REST proxy"}
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """A signal asked for the end."""


def main(arguments: list[str]) -> int:
    parser = Parser(
        prog="moldau up",
        description="Start a broker, a schema registry and a REST proxy together. Ctrl-C stops all of them.",
        epilog=EXAMPLES,
    )
    for name, usual in ((REGISTRY, 8081), (REST, 8082)):
        told = f"(default: {usual}; 0: a free one)"
        parser.add_argument(f"--{name}-port", metavar="PORT", type=whole(0, 65_535, "port"), default=usual, help=told)
    parser.add_argument("--host", default="127.0.0.1", help="where all of them listen (default: %(default)s)")
    parser.add_argument("--without", choices=(REGISTRY, REST), action="append", default=[], help="leave one out")
    add_start_options(parser)
    options = parser.parse_args(arguments)
    try:
        check_services()
    except BrokerFailed as wrong:
        raise CommandFailed(str(wrong)) from None
    scratch = Path(tempfile.mkdtemp(prefix="moldau-up-"))
    try:
        with ending_by_signals():
            return run(options, start_words(options), scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def add_start_options(parser: Parser) -> None:
    """Those of `moldau start`, which judges their values; see its help."""
    start = parser.add_argument_group("for the broker, as moldau start has them")
    start.add_argument("properties", metavar="server.properties", nargs="?")
    for name, metavar in START.items():
        start.add_argument(f"--{name}", metavar=metavar)
    for name in REPEATED:
        start.add_argument(f"--{name}", metavar="KEY=VALUE", action="append", default=[])
    for name in FLAGS:
        start.add_argument(f"--{name}", action="store_true")


def start_words(options: Namespace) -> list[str]:
    given = vars(options)
    words = [] if options.properties is None else [options.properties]
    words += ["--host", options.host]
    for name in START:
        value = given[name.replace("-", "_")]
        words += [] if value is None else [f"--{name}", value]
    words += [word for name in REPEATED for value in given[name.replace("-", "_")] for word in (f"--{name}", value)]
    return words + [f"--{name}" for name in FLAGS if given[name.replace("-", "_")]]


@contextmanager
def ending_by_signals() -> Iterator[None]:
    """The first signal is for the end; a second one while that is under way does not cut it short."""

    def end(number: int, _: object) -> NoReturn:
        for each in ENDINGS:
            signal.signal(each, signal.SIG_IGN)
        raise Ended(number)

    before = {each: signal.getsignal(each) for each in ENDINGS}
    for each in ENDINGS:
        if before[each] != signal.SIG_IGN:
            signal.signal(each, end)
    try:
        yield
    finally:
        for each in ENDINGS:
            signal.signal(each, before[each])


def run(options: Namespace, start: list[str], scratch: Path) -> int:
    services = Services(scratch)
    broker, answer = launch([*start, "--scratch", os.fspath(scratch)])
    try:
        ready = await_broker(answer)
        if ready is None:
            return broker.wait()
        clients = ClientSettings(login_of(ready), lambda: ready.servers)
        for name, at in ((REGISTRY, options.registry_port), (REST, options.rest_port)):
            if name not in options.without:
                services.start(name, clients, host=options.host, port=at, timeout_s=SERVICE_START_S_MAX, is_shown=True)
        print(banner(ready, services), flush=True)
        watch(broker, services)
    except BrokerFailed as wrong:
        raise CommandFailed(str(wrong).rstrip(":\n")) from None
    except Ended:
        return OK
    finally:
        services.end()
        end_process(broker, signal.SIGTERM, timeout_s=2 * STOP_S_MAX)


def launch(start: list[str]) -> tuple[subprocess.Popen[bytes], int]:
    """Its process, and the descriptor on which it tells that it is ready."""
    ready, told = os.pipe()
    command = [sys.executable, "-P", "-m", "moldau", "start", *start]
    try:
        broker = subprocess.Popen(
            [*command, "--ready-fd", str(told), "--stop-with-stdin"],
            stdin=subprocess.PIPE,  # its end closes with this process, however that ends
            stdout=subprocess.DEVNULL,
            pass_fds=(told,),
            start_new_session=True,  # Ctrl-C goes to all processes of a terminal's group
        )
    finally:
        os.close(told)
    return broker, ready


def await_broker(answer: int) -> Ready | None:
    """None if it ended before, and has said why."""
    try:
        return await_ready(answer, timeout_s=BROKER_START_S_MAX)
    except ConnectionError:
        return None
    except TimeoutError as wrong:
        raise BrokerFailed(str(wrong)) from None
    finally:
        os.close(answer)


def login_of(ready: Ready) -> Login | None:
    """The admin's, where the broker is secured."""
    if ready.secured_by is None:
        return None
    from moldau.security.starter.clients import Login
    from moldau.security.starter.files import ADMIN, StarterFiles

    files = StarterFiles(Path(ready.secured_by))
    return Login(ADMIN, files.password(ADMIN), files.authority)


def banner(ready: Ready, services: Services) -> str:
    lines = ["all of it answers; Ctrl-C stops it", f"  broker      {ready.servers}"]
    lines += [f"  {NAMES[name]:<11} {services[name].url}" for name in NAMES if name in services]
    if ready.metrics is not None:
        lines.append(f"  metrics     {ready.metrics}")
    if ready.secured_by is not None:
        lines.append(f"  security    TLS, and User:admin's password, which is in {ready.secured_by}/admin.password")
    return "\n".join(lines)


def watch(broker: subprocess.Popen[bytes], services: Services) -> NoReturn:
    """Until one of them ends, which nobody asked for."""
    started = [services[name] for name in NAMES if name in services]
    while broker.poll() is None and all(each.is_running for each in started):
        time.sleep(LOOK_S)
    fallen = [f"the {NAMES[each.name]} (exit code {each.exit_code})" for each in started if not each.is_running]
    if broker.returncode is not None:
        fallen.insert(0, f"the broker (exit code {broker.returncode})")
    raise CommandFailed(f"{' and '.join(fallen)} ended; the others are stopped")
