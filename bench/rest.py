"""REST produce: requests and records a second, and the proxy's memory, for v2 and v3.

    python bench/rest.py [--bootstrap HOST:PORT] [--requests 2000] [--clients 4] [--records 1 10 100] [--bytes 100]

Starts a broker of ours unless one is named. One line for each kind of request.
Each client is a thread with a connection.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import moldau

V2_BINARY, JSON = "application/vnd.kafka.binary.v2+json", "application/json"
START_S_MAX = 60.0
TOPIC = "rest-bench"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap")
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--records", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--bytes", type=int, default=100)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        bootstrap = options.bootstrap or stack.enter_context(moldau.run()).bootstrap_servers
        url, pid = stack.enter_context(running_proxy(bootstrap))
        cluster = json.loads(ask(url, "GET", "/v3/clusters", None))["data"][0]["cluster_id"]
        path = f"/v3/clusters/{cluster}/topics"
        ask(url, "POST", path, json.dumps({"topic_name": TOPIC, "partitions_count": 4}).encode())
        tell(f"{'api':<4} {'records':>8} {'requests/s':>11} {'records/s':>10} {'ms/request':>11} {'RSS MiB':>8}")
        for count in options.records:
            value = "eHh4" * (options.bytes // 3)
            v2 = json.dumps({"records": [{"value": value}] * count}).encode()
            v3 = json.dumps({"value": {"type": "BINARY", "data": value}}).encode() * count
            for api, target, kind, body in (
                ("v2", f"/topics/{TOPIC}", V2_BINARY, v2),
                ("v3", f"{path}/{TOPIC}/records", JSON, v3),
            ):
                load(url, target, kind, body, clients=options.clients, requests=options.clients * 20)
                took_s = load(url, target, kind, body, clients=options.clients, requests=options.requests)
                a_second = options.requests / took_s
                each_ms = took_s / options.requests * options.clients * 1_000
                line = f"{api:<4} {count:>8} {a_second:>11.0f} {a_second * count:>10.0f} {each_ms:>11.2f}"
                tell(f"{line} {rss_mib(pid):>8.0f}")


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def load(url: str, path: str, kind: str, body: bytes, *, clients: int, requests: int) -> float:
    def send() -> None:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        for _ in range(requests // clients):
            connection.request("POST", path, body, {"Content-Type": kind})
            answer = connection.getresponse()
            content = answer.read()
            assert answer.status == 200, content
        connection.close()

    threads = [threading.Thread(target=send) for _ in range(clients)]
    began_s = time.perf_counter()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return time.perf_counter() - began_s


def ask(url: str, method: str, path: str, body: bytes | None) -> bytes:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request(method, path, body, {"Content-Type": JSON})
    content = connection.getresponse().read()
    connection.close()
    return content


@contextlib.contextmanager
def running_proxy(bootstrap: str) -> Iterator[tuple[str, int]]:
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder, "ready.json")
        command = [sys.executable, "-m", "moldau", "rest", "-b", bootstrap, "--port", "0"]
        process = subprocess.Popen(
            [*command, "--ready-file", str(ready), "--stop-with-stdin"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        deadline_s = time.monotonic() + START_S_MAX
        while not ready.exists():
            assert process.poll() is None, "the proxy has ended"
            assert time.monotonic() < deadline_s, "the proxy does not answer"
            time.sleep(0.05)
        try:
            yield json.loads(ready.read_text())["url"], process.pid
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(START_S_MAX)


def rss_mib(pid: int) -> float:
    line = next(each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmRSS:"))
    return int(line.split()[1]) / 1_024


if __name__ == "__main__":
    main()
