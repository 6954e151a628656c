"""The registry as a process: what it opens, what it says, how it ends."""

from __future__ import annotations

import asyncio
import logging
import ssl
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import uvloop

from moldau.cli.connection import nobody_listens
from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.owned import end_with_input, tell_ready
from moldau.cli.registry.settings import Wanted
from moldau.cli.wire import cluster_of
from moldau.client.cluster import Cluster, NoAnswer, NobodyListens, Refused
from moldau.core.clock import SystemClock
from moldau.registry.forwarding import Forwarder
from moldau.registry.rights import OfCluster
from moldau.registry.service import Registry
from moldau.registry.serving.api import Api
from moldau.registry.serving.application import expose, registry_application
from moldau.registry.storing.electing import Identity
from moldau.registry.storing.topic import UnfitTopic, prepare
from moldau.security.tls.settings import TlsConfigError, TlsSettings
from moldau.web.application import Surroundings
from moldau.web.errors import ApiError
from moldau.web.listening import Bound, CannotListen, bind, bracketed
from moldau.web.logins import FileJudge, Judge
from moldau.web.serving import Server, until_signal
from moldau.web.sessions import PassthroughJudge

LOGGER = logging.getLogger(__name__)


def serve(options: Namespace, wanted: Wanted) -> int:
    contexts = _contexts(wanted.tls)
    open_cluster = partial(cluster_of, wanted.client, timeout_s=wanted.timeout_s)
    try:
        bound = bind(wanted.listeners)
    except CannotListen as wrong:
        raise CommandFailed(str(wrong)) from None
    try:
        cluster_id = _prepare(open_cluster, wanted)
        process = Process(options, wanted, bound, contexts, open_cluster, cluster_id)
        return uvloop.run(until_signal(process.serve))
    finally:
        for each in bound:
            each.socket.close()


def _contexts(settings: TlsSettings | None) -> tuple[ssl.SSLContext, ssl.SSLContext] | None:
    """For listeners, and to reach the leader's."""
    if settings is None:
        return None
    from moldau.security.tls.contexts import client_tls, server_tls

    now_s = SystemClock().now_ms() / 1_000
    try:
        return server_tls(settings, now_s=now_s).context, client_tls(settings, now_s=now_s).context
    except TlsConfigError as wrong:
        raise UsageError(str(wrong)) from None


def _prepare(open_cluster: Callable[[], Cluster], wanted: Wanted) -> str:
    """The topic; gives the cluster's id."""
    try:
        with open_cluster() as cluster:
            prepare(cluster, wanted.registry.topic, wanted.replicas)
            return cluster.metadata([]).cluster_id or ""
    except NobodyListens as wrong:
        raise nobody_listens(wrong.servers) from None
    except (UnfitTopic, NoAnswer) as wrong:
        raise CommandFailed(str(wrong)) from None
    except Refused as wrong:
        raise CommandFailed(f"topic {wanted.registry.topic}: {wrong}") from None


def _judge(wanted: Wanted, cluster: OfCluster | None) -> Judge | None:
    if cluster is not None:
        return PassthroughJudge(cluster.users)
    return None if wanted.users is None else FileJudge(wanted.users)


@dataclass(frozen=True, slots=True)
class Process:
    options: Namespace
    wanted: Wanted
    bound: Sequence[Bound]
    contexts: tuple[ssl.SSLContext, ssl.SSLContext] | None
    open_cluster: Callable[[], Cluster]
    cluster_id: str

    async def serve(self, take: Callable[[Callable[[], None]], None]) -> int:
        wanted, contexts = self.wanted, self.contexts
        told = next(each for each in self.bound if each.listener.scheme == wanted.scheme).listener
        identity = Identity(wanted.host, wanted.port or told.port, wanted.may_lead, wanted.scheme)
        registry = Registry(self.open_cluster, identity, wanted.registry)
        api = Api(registry, Forwarder(contexts and contexts[1]), self.cluster_id)
        rights = OfCluster(wanted.client, wanted.timeout_s) if wanted.is_passthrough else None
        if rights is not None:
            api.rights = rights
        around = Surroundings(
            name="registry",
            expose=lambda found: expose(api, found),
            unready=lambda: registry.problems,
            judge=_judge(wanted, rights),
        )
        server = Server(registry_application(api, around), self.bound, tls=contexts and contexts[0])
        around.guard = server.guard
        take(server.end)
        if self.options.stop_with_stdin:
            end_with_input(asyncio.get_running_loop(), server.end)
        introducing: list[asyncio.Task[None]] = []

        def ready() -> None:
            registry.elect()
            introducing.append(asyncio.create_task(self.introduce(registry)))

        try:
            await registry.start()
            await server.serve(ready)
        except (NoAnswer, Refused, ApiError) as wrong:
            raise CommandFailed(f"topic {wanted.registry.topic} cannot be read: {wrong}") from None
        finally:
            for each in introducing:
                each.cancel()
            await registry.stop()
            api.forwarder.close()
            if rights is not None:
                rights.close()
        return OK

    async def introduce(self, registry: Registry) -> None:
        """When writes are taken, or as soon as it is clear that nobody takes them yet."""
        try:
            leader = (await registry.wait_for_leader()).url
        except ApiError:
            leader = "none yet"
        urls = [each.listener.url for each in self.bound]
        if self.options.log_format == "text":
            state = registry.state
            whose = " (this instance)" if registry.is_leading else ""
            servers = self.wanted.client["bootstrap.servers"]
            print(f"schema registry of cluster {self.cluster_id} at {servers}; Ctrl-C stops it")
            print(f"  listening  {', '.join(urls)}")
            print(f"  topic      {self.wanted.registry.topic}, {len(state.names)} subjects")
            print(f"  leader     {leader}{whose}", flush=True)
        else:
            LOGGER.warning("answering at %s", ", ".join(urls), extra={"urls": urls, "leader": leader})
        if self.options.ready_file is not None:
            port = self.bound[0].listener.port
            url = f"{self.bound[0].listener.scheme}://{bracketed(self.wanted.host)}:{port}"
            tell_ready(self.options.ready_file, url=url, urls=urls, leader=leader)
