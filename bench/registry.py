"""Registrations and look-ups by id, a second, and the memory of the process that answers them.

python bench/registry.py                     Moldau's registry in front of a Moldau broker
python bench/registry.py --url http://...    any registry that runs already, such as karapace; --pid for its memory
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import moldau

CLIENTS = 8
START_S_MAX = 60.0
HEADERS = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="of a registry that runs")
    parser.add_argument("--pid", type=int, help="its process, for its memory")
    parser.add_argument("--registrations", type=int, default=5_000)
    parser.add_argument("--lookups", type=int, default=50_000)
    parser.add_argument("--broker", help="in front of this cluster instead of a Moldau broker of its own")
    options = parser.parse_args()
    if options.url:
        measure(options, options.url, options.pid)
        return
    if options.broker:
        with registry(options.broker) as (url, pid):
            measure(options, url, pid)
        return
    with moldau.run() as broker, registry(broker.bootstrap_servers) as (url, pid):
        measure(options, url, pid)


@contextmanager
def registry(bootstrap: str) -> Iterator[tuple[str, int]]:
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        command = [sys.executable, "-m", "moldau", "registry", "-b", bootstrap, "--port", "0"]
        command += ["--ready-file", str(ready), "--stop-with-stdin"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        try:
            deadline_s = time.monotonic() + START_S_MAX
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > deadline_s:
                    raise SystemExit("the registry did not start")
                time.sleep(0.02)
            yield json.loads(ready.read_text())["url"], process.pid
        finally:
            process.communicate(timeout=START_S_MAX)


def measure(options: argparse.Namespace, url: str, pid: int | None) -> None:
    before = memory_mb(pid)
    register = rate(url, options.registrations, registration)
    ids = [*range(1, 1 + min(1_000, options.registrations))]
    look_up = rate(url, options.lookups, lambda number: ("GET", f"/schemas/ids/{ids[number % len(ids)]}", None))
    tell(f"registrations  {register:8,.0f} a second, {CLIENTS} clients, each another subject and schema")
    tell(f"look-ups       {look_up:8,.0f} a second by id")
    if pid is not None:
        tell(f"memory         {before:8,.0f} MB at the start, {memory_mb(pid):,.0f} MB at the end")


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")


def registration(number: int) -> tuple[str, str, bytes | None]:
    fields = [{"name": f"f{each}", "type": "long"} for each in range(10)]
    schema = json.dumps({"type": "record", "name": f"Order{number}", "fields": fields})
    return "POST", f"/subjects/bench-{number}/versions", json.dumps({"schema": schema}).encode()


def rate(url: str, count: int, question: Callable[[int], tuple[str, str, bytes | None]]) -> float:
    numbers, lock = iter(range(count)), threading.Lock()
    failures: list[str] = []

    def ask() -> None:
        address = urlsplit(url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port)
        while not failures:
            with lock:
                number = next(numbers, None)
            if number is None:
                break
            connection.request(*question(number), HEADERS)
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 200:
                failures.append(f"{answer.status}: {content[:200]!r}")
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    began_s = time.monotonic()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if failures:
        raise SystemExit(failures[0])
    return count / (time.monotonic() - began_s)


def memory_mb(pid: int | None) -> float:
    if pid is None:
        return 0.0
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith("VmRSS")) / 1_024


if __name__ == "__main__":
    main()
