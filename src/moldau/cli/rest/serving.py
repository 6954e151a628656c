"""The proxy as a process: checked before it listens, introduced when it does, until it is told to end."""

from __future__ import annotations

import asyncio
import logging
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from ssl import SSLContext
from typing import TYPE_CHECKING

from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.owned import end_with_input, tell_ready
from moldau.cli.rest.settling import Settled, settled
from moldau.core.clock import SystemClock
from moldau.web.extra import is_installed

if TYPE_CHECKING:
    from moldau.web.listening import Bound
    from moldau.web.logins import Judge

LOGGER = logging.getLogger(__name__)


def serve(options: Namespace) -> int:
    if not is_installed():
        raise CommandFailed("the REST proxy needs: pip install 'moldau[registry]'")
    import uvloop

    from moldau.web.listening import CannotListen, InvalidListener, bind, parse_listeners

    found = settled(options)
    try:
        listeners = parse_listeners(found.listeners)
    except InvalidListener as wrong:
        raise UsageError(f"listeners: {wrong}") from None
    tls = _tls(found) if any(each.is_tls for each in listeners) else None
    judge = _judge(found)
    _check_clients(found)
    try:
        bound = bind(listeners)
    except CannotListen as wrong:
        raise CommandFailed(str(wrong)) from None
    uvloop.run(_run(options, found, bound, tls, judge))
    return OK


def _tls(found: Settled) -> SSLContext:
    from moldau.security.tls.contexts import server_tls
    from moldau.security.tls.settings import TlsConfigError, TlsSettings

    try:
        return server_tls(TlsSettings.from_keys(found.tls), now_s=SystemClock().now_ms() / 1_000).context
    except TlsConfigError as wrong:
        raise UsageError(str(wrong)) from None


def _judge(found: Settled) -> Judge | None:
    from moldau.web.logins import FileJudge, InvalidUsers, read_users

    if found.users_file is None or found.settings.authentication != "BASIC":
        return None
    try:
        return FileJudge(read_users(Path(found.users_file).read_text()))
    except InvalidUsers as wrong:
        raise UsageError(f"{found.users_file}: {wrong}") from None
    except (OSError, UnicodeDecodeError) as wrong:
        raise UsageError(f"cannot read {found.users_file}: {getattr(wrong, 'strerror', wrong)}") from None


def _check_clients(found: Settled) -> None:
    """What a client does not know is told here, and not to the first who asks."""
    from moldau.rest.checking import UnusableSettings, check_settings

    try:
        check_settings(found.settings)
    except UnusableSettings as wrong:
        raise UsageError(f"client configuration: {wrong}") from None


async def _run(
    options: Namespace, found: Settled, bound: list[Bound], tls: SSLContext | None, judge: Judge | None
) -> None:
    from moldau.rest.application import is_stream, made_application
    from moldau.rest.making import made_proxy
    from moldau.web.limits import Limits
    from moldau.web.serving import Server, until_signal
    from moldau.web.sessions import PassthroughJudge

    proxy = made_proxy(found.settings)
    if found.settings.authentication == "PASSTHROUGH":
        judge = PassthroughJudge(proxy.sessions)
    limits = Limits(body_bytes=found.body_bytes_max, is_stream=is_stream)
    app, around = made_application(proxy, judge, limits)
    server = Server(app, bound, limits, tls)
    around.guard = server.guard

    async def run(tell_ender: Callable[[Callable[[], None]], None]) -> None:
        def end() -> None:
            proxy.ending.set()
            server.end()

        tell_ender(end)
        if options.stop_with_stdin:
            end_with_input(asyncio.get_running_loop(), end)
        await server.serve(lambda: _introduce(options, found, bound))

    try:
        await until_signal(run)
    finally:
        await proxy.close()
    if options.log_format != "text":
        LOGGER.info("REST proxy stopped")


def _introduce(options: Namespace, found: Settled, bound: list[Bound]) -> None:
    """On standard output: for people, or one object for the program that started this one."""
    urls, servers = [each.listener.url for each in bound], found.settings.client["bootstrap.servers"]
    registry, method = found.settings.registry_url, found.settings.authentication.value
    if options.ready_file is not None:
        tell_ready(options.ready_file, url=urls[0], urls=urls, bootstrap_servers=servers)
    if options.log_format != "text":
        LOGGER.info("answering at %s for %s", ", ".join(urls), servers, extra={"urls": urls, "servers": servers})
        return
    logins = {"NONE": "nobody has to log in", "BASIC": f"users of {found.users_file}", "PASSTHROUGH": "the cluster's"}
    print(f"REST proxy for the cluster at {servers}; Ctrl-C stops it")
    print(f"  listening  {', '.join(urls)}")
    print(f"  registry   {registry or 'none: AVRO, JSONSCHEMA and PROTOBUF are refused'}")
    print(f"  logins     {logins[method]}", flush=True)
