"""What Prometheus costs a broker: how long a scrape takes, how much it is, and the processor's time for it.

    python -m bench.scrapes                         10, 1,000 and 10,000 partitions (about a minute)
    python -m bench.scrapes 100 --scrapes 5

The processor's time is the whole broker's while nothing else is asked of it. Then a client asks for versions again and
again while pages are scraped: the longest that it waited bounds what a scrape holds up others.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from itertools import pairwise

import moldau
from bench.stalls import say
from moldau.wire.messages import ApiVersionsRequest, ApiVersionsResponse
from tests.broker.handlers.wire import Wire
from tests.scraping import get, scrape

PARTITIONS_PER_TOPIC = 100


def longest_wait_s(servers: str, over: threading.Event, waits: list[float]) -> None:
    wire = Wire(servers)
    try:
        while not over.is_set():
            begun = time.perf_counter()
            wire.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
            waits.append(time.perf_counter() - begun)
    finally:
        wire.close()


def measure(partitions: int, scrapes: int) -> None:
    with moldau.run(metrics=True) as broker:
        url = broker.metrics_url
        assert url is not None
        for number in range(max(1, partitions // PARTITIONS_PER_TOPIC)):
            broker.create_topic(f"topic-{number}", partitions=min(partitions, PARTITIONS_PER_TOPIC))
        size, times, cpu = 0, [], [scrape(url).value("process_cpu_seconds_total")]
        for _ in range(scrapes):
            begun = time.perf_counter()
            answered = get(url)
            times.append(time.perf_counter() - begun)
            size = len(answered.body)
            cpu.append(scrape(url).value("process_cpu_seconds_total"))
        each_s = statistics.median(after - before for before, after in pairwise(cpu)) / 2  # two scrapes in each turn
        over, waits = threading.Event(), [0.0]
        client = threading.Thread(target=longest_wait_s, args=(broker.bootstrap_servers, over, waits))
        client.start()
        for _ in range(scrapes):
            get(url)
        over.set()
        client.join()
    say(
        f"{partitions:>10,} {size / 1e6:>8.2f} MB {statistics.median(times):>9.3f} s {each_s:>9.3f} s"
        f" {1_000 * max(waits):>9.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("partitions", nargs="*", type=int, default=[10, 1_000, 10_000])
    parser.add_argument("--scrapes", type=int, default=10)
    options = parser.parse_args()
    say(f"{'partitions':>10} {'page':>11} {'scrape':>11} {'processor':>11} {'longest wait':>12}")
    for partitions in options.partitions:
        measure(partitions, options.scrapes)


if __name__ == "__main__":
    main()
