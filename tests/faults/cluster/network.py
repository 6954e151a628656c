"""A network of its own for one run: each host in a network namespace, and a router between them that can lose packets.

All of it lives in namespaces that end with the run's process, however that ends (`inside`). The router drops what a
rule says, one way at a time and in silence, as a broken network does: a blackhole route on the sender itself would tell
the sender at once. There is no netem in many kernels, so slow packets take a way through a thread here.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from itertools import count
from pathlib import Path

INSIDE = "FAULTS_INSIDE"
EVERYBODY = "*"

_NAMES = Path("/run/netns")
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_SLOW, _SLOW_TABLE, _SLOW_DONE_PRIORITY = "slow0", 100, 50
_PACKET_BYTES_MAX = 65_536


def inside(module: str, arguments: list[str]) -> None:
    """Go on as the same program in namespaces of its own, where processes, mounts and interfaces end with it."""
    if os.environ.get(INSIDE):
        return
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    os.execvpe(
        command[0], [*command, sys.executable, "-m", module, *arguments], {**os.environ, INSIDE: "1"}
    )  # fmt: skip


class Network:
    """Hosts by their names, numbered from 1; the router, where this process lives, reaches all of them."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self._numbers = {name: number for number, name in enumerate(hosts, start=1)}
        self._priorities = count(1_000)
        self._rules: dict[tuple[str, str], int] = {}
        self._slow: SlowWay | None = None

    def address(self, host: str) -> str:
        return f"10.77.{self._numbers[host]}.2"

    def command(self, host: str, command: list[str]) -> list[str]:
        """How to run a program on a host; its process is the program itself."""
        return ["nsenter", f"--net={_NAMES / host}", "--", *command]

    def build(self) -> None:
        _NAMES.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", str(_NAMES)], check=True)
        _ip("link set lo up")
        for key, value in (("ip_forward", "1"), ("conf/all/rp_filter", "0"), ("conf/default/rp_filter", "0")):
            Path("/proc/sys/net/ipv4", key).write_text(value)
        for name, number in self._numbers.items():
            subnet = f"10.77.{number}"
            subprocess.run(["ip", "netns", "add", name], check=True)
            _ip(
                f"link add v{number} type veth peer name eth0 netns {name}",
                f"addr add {subnet}.1/24 dev v{number}",
                f"link set v{number} up",
            )
            _ip(
                "link set lo up", f"addr add {subnet}.2/24 dev eth0", "link set eth0 up",
                f"route add default via {subnet}.1", host=name,
            )  # fmt: skip

    def cut(self, sender: str, receiver: str) -> None:
        """Lose all packets from one host to another, from now on; the other way is another cut."""
        key = (sender, receiver)
        if key not in self._rules:
            self._rules[key] = priority = next(self._priorities)
            _ip(f"rule add {self._from_to(sender, receiver)} blackhole priority {priority}")

    def part(self, left: Iterable[str], right: Iterable[str]) -> None:
        """Both ways, each of these from each of those."""
        others = list(right)
        for one in left:
            for other in others:
                self.cut(one, other)
                self.cut(other, one)

    def heal(self) -> None:
        rules, self._rules = self._rules, {}
        for priority in rules.values():
            _ip(f"rule del priority {priority}")
        if self._slow is not None:
            self._slow.close()
            self._slow = None

    def slow_down(self, host: str, delay_s: float, *, lost_share: float = 0.0) -> None:
        """Every packet to and from a host takes so much longer, and some never come."""
        self._slow = SlowWay(delay_s, lost_share)
        for sender, receiver in ((host, EVERYBODY), (EVERYBODY, host)):
            self._rules["slow " + sender, receiver] = priority = next(self._priorities)
            _ip(f"rule add {self._from_to(sender, receiver)} lookup {_SLOW_TABLE} priority {priority}")

    def reset(self, host: str) -> None:
        """Break every connection that a host has now: both its ends are told."""
        command = self.command(host, ["ss", "--kill", "--tcp", "--no-header", "state", "established"])
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def _from_to(self, sender: str, receiver: str) -> str:
        one, other = ("all" if host == EVERYBODY else self.address(host) for host in (sender, receiver))
        return f"from {one} to {other}"


class SlowWay:
    """A network device whose packets come back later. Rules send packets there; those that come back go on."""

    def __init__(self, delay_s: float, lost_share: float) -> None:
        self._delay_s = delay_s
        self._lost_share = lost_share
        self._device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self._device, _TUNSETIFF, struct.pack("16sH", _SLOW.encode(), _IFF_TUN | _IFF_NO_PI))
        _ip(
            f"link set {_SLOW} up",
            f"route add default dev {_SLOW} table {_SLOW_TABLE}",
            f"rule add iif {_SLOW} lookup main priority {_SLOW_DONE_PRIORITY}",
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        self._thread.join()
        os.close(self._device)  # the device and its route end with it
        _ip(f"rule del priority {_SLOW_DONE_PRIORITY}")

    def _run(self) -> None:
        waiting: list[tuple[float, int, bytes]] = []
        order = count()
        while not self._ending.is_set():
            left_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 0.05
            readable, _, _ = select.select([self._device], [], [], min(left_s, 0.05))
            now_s = time.monotonic()
            if readable:
                with contextlib.suppress(BlockingIOError):
                    while True:
                        packet = os.read(self._device, _PACKET_BYTES_MAX)
                        if random.random() >= self._lost_share:
                            heapq.heappush(waiting, (now_s + self._delay_s, next(order), packet))
            while waiting and waiting[0][0] <= now_s:
                with contextlib.suppress(OSError):
                    os.write(self._device, heapq.heappop(waiting)[2])


def _ip(*lines: str, host: str | None = None) -> None:
    place = [] if host is None else ["-n", host]
    subprocess.run(["ip", *place, "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)
