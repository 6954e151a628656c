"""`moldau monitor`: lag of consumer groups, judged by Burrow's rules and in seconds; a service, or a look for cron."""

from __future__ import annotations

import logging
import tomllib
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.failures import FAILED, CommandFailed, UsageError
from moldau.cli.monitor.connecting import opener
from moldau.cli.monitor.once import look_once
from moldau.cli.monitor.serving import serve
from moldau.core.logs import configure_logging

if TYPE_CHECKING:
    from moldau.monitor.history import History
    from moldau.monitor.settings import Settings

LOCAL = "local"  # the name of the only cluster

LOGGER = logging.getLogger(__name__)


def run_logged(options: Namespace) -> int:
    begin_log(options)
    try:
        return run(options)
    except Exception as wrong:
        if options.once or not is_elsewhere(options):
            raise
        told = isinstance(wrong, CommandFailed)
        LOGGER.error("%s", wrong, exc_info=None if told else wrong)
        if options.log_file is not None:
            raise
        return wrong.exit_code if isinstance(wrong, CommandFailed) else FAILED


def run(options: Namespace) -> int:
    settings = settled(options)
    openers = {each.name: opener(each, options) for each in settings.clusters}
    from moldau.monitor.history import UnusableHistory

    try:
        history = opened_history(settings)
        work = look_once if options.once else serve
        return work(options, settings, openers, history)
    except UnusableHistory as wrong:
        raise CommandFailed(str(wrong)) from None


def begin_log(options: Namespace) -> None:
    """What one look has to say is in its output and its exit code."""
    try:
        configure_logging(
            level="ERROR" if options.once else options.log_level, form=options.log_format, path=options.log_file
        )
    except OSError as wrong:
        raise UsageError(f"cannot write {options.log_file}: {wrong.strerror}") from None
    logging.captureWarnings(capture=True)


def is_elsewhere(options: Namespace) -> bool:
    """Whether the log is something else than lines for people on standard error."""
    return options.log_file is not None or options.log_format != "text"


def settled(options: Namespace) -> Settings:
    """The file, and what the command line says instead; without clusters in the file, the one of all other tools."""
    from moldau.monitor.settings import ClusterSettings, InvalidSettings, read_settings

    try:
        settings = read_settings(read_file(options.config) if options.config else {})
    except InvalidSettings as wrong:
        raise UsageError(f"{options.config}: {wrong}") from None
    if settings.history and options.config:
        settings = replace(settings, history=str(Path(options.config).parent / settings.history))
    if settings.clusters and options.bootstrap_server:
        raise UsageError(f"--bootstrap-server: the clusters are those of {options.config}")
    return replace(
        settings,
        clusters=settings.clusters or (ClusterSettings(options.profile or LOCAL),),
        listen=options.listen or settings.listen,
        history=options.history or settings.history,
        interval_s=options.interval or settings.interval_s,
    )


def read_file(path: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(Path(path).read_bytes().decode())
    except OSError as wrong:
        raise UsageError(f"cannot read {path}: {wrong.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {path}: it is no text in UTF-8") from None
    except tomllib.TOMLDecodeError as wrong:
        raise UsageError(f"{path}: {wrong}") from None


def opened_history(settings: Settings) -> History | None:
    if settings.history is None:
        return None
    from moldau.monitor.history import History

    return History(settings.history)
