"""`moldau start --brokers 3`: a process for each broker, and one that starts them, watches them and ends them."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from argparse import Namespace
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path

from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.listeners import ListenerConfig
from moldau.core.config.monitoring import LISTENER
from moldau.embedded.members import Member, broker_ids_of, first_broker_id, members
from moldau.embedded.process import Ready, await_ready
from moldau.log.directories.lock import DirectoryLock
from moldau.log.directories.meta_properties import UnusableDirectory
from moldau.node.announcing import say, tell_ready
from moldau.node.running import StartFailed
from moldau.node.supervisor import READY, STOPPING, notify_supervisor

LOGGER = logging.getLogger(__name__)

START_S_MAX = 3_600.0  # recovery after a crash of the machine reads every log
PORT_MAX = 65_535
STOP_S_MAX = 60.0  # for one broker: it hands over what it leads and answers what is under way


def broker_count(asked: int) -> int:
    """0 asks for one for each core that this process may use."""
    return asked or len(os.sched_getaffinity(0))


async def run_several(config: BrokerConfig, options: Namespace) -> int:
    """Until all have ended; the number of those that ended without being told.

    The folders are locked meanwhile: of another command for the same brokers, those that it has more would join these.
    """
    count = broker_count(options.brokers)
    check_ports("listeners", config.listeners, count)
    check_ports("advertised.listeners", config.advertised_listeners, count)
    if config.metrics_listener is not None:
        check_ports(LISTENER, [ListenerConfig("http", *astuple(config.metrics_listener))], count)
    data_dirs = [Path(each).absolute() for each in config.log_dirs]
    cluster = Several(options)
    cluster.follow_signals()
    with ExitStack() as held:
        try:
            ids = broker_ids(config, data_dirs, count)
            wanted = members(data_dirs, ids, has_service=config.metadata_service is not None)
            for data_dir in data_dirs:
                held.callback(DirectoryLock(os.fspath(data_dir)).release)
        except UnusableDirectory as wrong:
            raise StartFailed(str(wrong)) from wrong
        await cluster.start(wanted, config)
        return await cluster.ended()


def broker_ids(config: BrokerConfig, data_dirs: Sequence[Path], count: int) -> range:
    """Those whose data is there come first. ConfigError where the configuration says that others do."""
    known = first_broker_id(data_dirs)
    first = config.node_id if known is None else known
    if first != config.node_id and "node.id" in config.layers.effective():
        raise ConfigError("node.id", config.node_id, f"{first}, the first broker whose data is in {data_dirs[0]}")
    ids = range(first, first + count)
    unused = sorted({each for data_dir in data_dirs for each in broker_ids_of(data_dir)} - set(ids))
    if unused:
        LOGGER.warning(
            "the data of %s is there, and %d brokers are started without: partitions with no replica elsewhere are "
            "offline; --brokers %d starts them too",
            ", ".join(f"broker {each}" for each in unused), count, unused[-1] - first + 1,
        )  # fmt: skip
    return ids


class Several:
    """The processes in the order of their brokers' ids."""

    def __init__(self, options: Namespace) -> None:
        self._options = options
        self._processes: dict[int, Process] = {}
        self._is_stopping = asyncio.Event()
        self._stopping: asyncio.Future[None] | None = None
        self._fallen = 0

    async def start(self, wanted: Sequence[Member], config: BrokerConfig) -> None:
        """Together, for each waits for the cluster to take it in. If one can't start, none does."""
        ready = []
        for index, member in enumerate(wanted):
            if not self._is_stopping.is_set():
                ready.append(await self._launch(member, config, index))
        loop = asyncio.get_running_loop()
        waiting = [
            loop.run_in_executor(None, partial(await_ready, descriptor, timeout_s=START_S_MAX)) for descriptor in ready
        ]
        try:
            started = await asyncio.gather(*waiting)
        except OSError as wrong:
            if not self._is_stopping.is_set():
                await self.stop("a broker did not start")
                raise StartFailed("not all brokers started; what kept one from it is above") from wrong
            return
        finally:
            await asyncio.gather(*waiting, return_exceptions=True)
            for descriptor in ready:
                os.close(descriptor)
        if not self._is_stopping.is_set():
            self._announce(wanted, started, config)

    async def ended(self) -> int:
        await asyncio.gather(*(self._watch(broker_id) for broker_id in self._processes))
        return self._fallen

    def follow_signals(self) -> None:
        """The first asks for a clean end, one broker after the other; the second for one of all at once."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                loop.add_signal_handler(number, self._obey, number)

    def _obey(self, number: signal.Signals) -> None:
        if self._is_stopping.is_set():
            for process in self._living():
                tell(process, number)
        else:
            self._stopping = asyncio.ensure_future(self.stop(number.name))

    async def stop(self, reason: str) -> None:
        """The last first: what each leads is taken over by those that are left."""
        if self._is_stopping.is_set():
            return
        self._is_stopping.set()
        LOGGER.info("stopping all brokers: %s", reason)
        notify_supervisor(STOPPING)
        for process in reversed(self._living()):
            tell(process, signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), STOP_S_MAX)
            except TimeoutError:
                LOGGER.warning("process %d did not end in %g s and is killed", process.pid, STOP_S_MAX)
                tell(process, signal.SIGKILL)

    def _living(self) -> list[Process]:
        return [process for process in self._processes.values() if process.returncode is None]

    async def _launch(self, member: Member, config: BrokerConfig, index: int) -> int:
        """Gives the descriptor on which the broker tells that it is ready."""
        ready, told = os.pipe()
        command = [sys.executable, "-P", "-m", "moldau", "start", *common_arguments(self._options), *member.arguments]
        command += ["--override", f"listeners={shifted(config.listeners, index)}"]
        if config.value("advertised.listeners") is not None:
            command += ["--override", f"advertised.listeners={shifted(config.advertised_listeners, index)}"]
        if config.metrics_listener is not None:
            own = config.metrics_listener
            command += ["--override", f"{LISTENER}={replace(own, port=own.port + index if own.port else 0)}"]
        # A supervisor is told of all of them by this process.
        environment = {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}
        try:
            self._processes[member.broker_id] = await asyncio.create_subprocess_exec(
                *command,
                *("--stop-with-stdin", "--ready-fd", str(told), "--log-broker", str(member.broker_id)),
                # Its end closes with this process, however that ends; no broker outlives it.
                stdin=subprocess.PIPE,
                pass_fds=(told,),
                env=environment,
                # Ctrl-C goes to all processes of a terminal's group, and would end all brokers at once.
                start_new_session=True,
            )
        finally:
            os.close(told)
        if self._is_stopping.is_set():  # whoever stops all brokers did not know of this one
            tell(self._processes[member.broker_id], signal.SIGTERM)
        return ready

    async def _watch(self, broker_id: int) -> None:
        process = self._processes[broker_id]
        code = await process.wait()
        if not self._is_stopping.is_set():
            self._fallen += 1
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            left = len(self._living())
            LOGGER.error("broker %d (process %d) ended with %s; %d are left", broker_id, process.pid, how, left)

    def _announce(self, wanted: Sequence[Member], started: Sequence[Ready], config: BrokerConfig) -> None:
        lines = [f"{len(wanted)} brokers answer clients; Ctrl-C stops them"]
        for member, ready in zip(wanted, started, strict=True):
            where = ", ".join(f"{name}://{address}" for name, address in ready.listeners.items())
            lines.append(f"  broker {member.broker_id:<4} {where}  (process {self._processes[member.broker_id].pid})")
        lines += [f"  metrics     {ready.metrics}" for ready in started if ready.metrics is not None]
        lines += [f"  data        {Path(each).absolute()}" for each in config.log_dirs]
        if config.metadata_service is not None:
            lines.append(f"  metadata    {config.metadata_service}")
        if self._options.secure:
            from moldau.node.securing.secure_start import bootstrap_servers, write_client_files

            servers = bootstrap_servers(
                (each.host, each.port) for ready in started for each in ready.listeners.values()
            )
            lines.append(write_client_files(self._options.secured_by, servers))
        if self._options.log_format == "text":
            say("\n".join(lines))
        if self._options.ready_fd is not None:
            places = [{name: (at.host, at.port) for name, at in each.listeners.items()} for each in started]
            secured_by = self._options.secured_by
            tell_ready(self._options.ready_fd, places, metrics=started[0].metrics, secured_by=secured_by)
        LOGGER.info("%d brokers started", len(wanted), extra={"brokers": [each.broker_id for each in wanted]})
        notify_supervisor(READY)


def tell(process: Process, number: signal.Signals) -> None:
    """One that has ended by itself meanwhile must not keep the others from being told."""
    with suppress(ProcessLookupError):
        process.send_signal(number)


def common_arguments(options: Namespace) -> list[str]:
    """What each broker is told as this command was."""
    arguments = [] if options.properties is None else [os.fspath(options.properties)]
    for override in options.override:
        arguments += ["--override", override]
    for user in options.add_scram:
        arguments += ["--add-scram", user]
    if options.secured_by is not None:
        arguments += ["--secured-by", os.fspath(options.secured_by)]
    for flag in ("no_kafka_environment", "accept_lost_log_dirs"):
        if getattr(options, flag):
            arguments.append(f"--{flag.replace('_', '-')}")
    arguments += ["--log-level", options.log_level, "--log-format", options.log_format]
    if options.log_file is not None:
        arguments += ["--log-file", os.fspath(options.log_file)]
    return arguments


def check_ports(key: str, listeners: Sequence[ListenerConfig], count: int) -> None:
    """ConfigError before any broker is started, where the ports that follow one another are too high or meet."""
    fixed = [each for each in listeners if each.port]
    for index, each in enumerate(fixed):
        if each.port + count - 1 > PORT_MAX:
            raise ConfigError(
                key, each, f"a port up to {PORT_MAX - count + 1}: {count} brokers take one after the other"
            )
        for other in fixed[:index]:
            if other.host == each.host and abs(other.port - each.port) < count:
                apart = f"ports {count} apart from each other: {count} brokers take one after the other"
                raise ConfigError(key, f"{other},{each}", apart)


def shifted(listeners: Sequence[ListenerConfig], by: int) -> str:
    """The same listeners on the next ports; a free one stays a free one."""
    return ",".join(str(replace(each, port=each.port + by if each.port else 0)) for each in listeners)
