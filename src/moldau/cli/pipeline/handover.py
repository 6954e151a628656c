"""What a driver in a cluster is told in private: settings of the command line, variables and files that the file names.

It is one setting of Spark with a name that Spark shows to nobody: neither a command line nor a web page has it, and it
needs no file that stays in a store.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from moldau.spark.pipelines.running.sessions.opening import SUBMITTED

SETTING = "spark.moldau.handed.secret"  # Spark's own `spark.redaction.regex` knows it by `secret`

TELLS_ALL = "org.apache.spark.scheduler.AsyncEventQueue"  # at INFO: a job's properties as they are, secrets among them


class HandedOver(NamedTuple):
    settings: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    places: Mapping[str, str] = {}  # where the pipeline's files belong, and the names under which they arrive

    def text(self) -> str:
        return json.dumps(self._asdict())

    @classmethod
    def of(cls, text: str) -> HandedOver:
        return cls(**json.loads(text))


def taken_over() -> HandedOver:
    """By a driver that spark-submit started; nothing where somebody else than this package submitted it."""
    if SUBMITTED not in os.environ:
        return HandedOver()
    from pyspark import SparkConf, SparkContext

    started: Any = SparkContext
    started._ensure_initialized()
    text = SparkConf().get(SETTING)
    _keep_to_itself(started._jvm)
    return HandedOver.of(text) if text else HandedOver()


def _keep_to_itself(jvm: Any) -> None:
    """A context that is made from here on has nothing of it, and a slow listener does not have the rest in the log."""
    jvm.java.lang.System.clearProperty(SETTING)
    log4j = jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(TELLS_ALL, log4j.Level.WARN)


def lay_out(handed: HandedOver) -> None:
    """Files that arrived side by side, put where the pipeline's file names them.

    On YARN they arrive as links into a cache, which outlives the container and must not become the pipeline's folder.
    """
    for place, name in handed.places.items():
        text = Path(name).read_bytes()
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).unlink(missing_ok=True)
        Path(place).write_bytes(text)


def as_properties(settings: Mapping[str, str]) -> str:
    """In the format of Java's properties files, of which Spark reads keys and values."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(text: str) -> str:
    """Whatever could end a line, a key or an escape: all but letters, digits and a few signs that mean nothing."""
    return "".join(each if (each.isalnum() and each.isascii()) or each in "._-/" else _unit(each) for each in text)


def _unit(character: str) -> str:
    """As Java counts: characters beyond the first 65,536 are two."""
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
