"""The configuration as Burrow shows its own: modules of coordinators. Passwords are never shown."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.monitor.burrow_json import Json
from moldau.monitor.notifying.sending import Call, HttpSender, MailSender, shown_url
from moldau.monitor.service import Monitor
from moldau.monitor.settings import NotifierSettings
from moldau.monitor.watching import Wanted

CLIENT_ID = "moldau-monitor"
DEFAULT = "default"  # the one module of a kind of which there is one


@dataclass(frozen=True, slots=True)
class Configuration:
    monitor: Monitor

    def main(self) -> Json:
        return {
            "general": {"pidfile": "", "stdout-logfile": "", "access-control-allow-origin": ""},
            "logging": {
                "filename": "", "max-size": 0, "max-backups": 0, "max-age": 0, "use-local-time": False,
                "use-compression": False, "level": "",
            },
            "zookeeper": {"servers": [], "timeout": 0, "root-path": ""},
            "httpserver": {DEFAULT: {"address": self.monitor.settings.listen, "tls": "", "timeout": 0}},
        }  # fmt: skip

    def modules(self, kind: str) -> list[str] | None:
        clusters = [each.name for each in self.monitor.settings.clusters]
        found = {
            "storage": [DEFAULT],
            "evaluator": [DEFAULT],
            "cluster": clusters,
            "consumer": clusters,
            "notifier": [each.name for each in self.monitor.settings.notifiers],
        }
        return found.get(kind)

    def module(self, kind: str, name: str) -> Json:
        """Of a module that there is."""
        if kind == "cluster":
            return self.cluster(name)
        if kind == "consumer":
            return self._consumer(name)
        if kind == "notifier":
            return _notifier(next(each for each in self.monitor.settings.notifiers if each.name == name))
        rules = self.monitor.settings.rules
        if kind == "evaluator":
            return {"class-name": "caching", "expire-cache": round(self.monitor.settings.interval_s)}
        return {
            "class-name": "inmemory",
            "intervals": rules.intervals,
            "min-distance": round(rules.min_distance_s),
            "group-allowlist": "",
            "expire-group": round(rules.expire_group_s),
        }

    def cluster(self, name: str) -> Json:
        interval_s = round(self.monitor.settings.interval_s)
        return {
            "class-name": "kafka",
            "servers": self._servers(name),
            "client-profile": _profile(),
            "topic-refresh": interval_s,
            "offset-refresh": interval_s,
        }

    def _consumer(self, name: str) -> Json:
        wanted = self.monitor.watches[name].wanted
        return {
            "class-name": "kafka",
            "cluster": name,
            "servers": self._servers(name),
            "group-allowlist": _pattern(wanted),
            "zookeeper-path": "",
            "zookeeper-timeout": 0,
            "client-profile": _profile(),
            "offsets-topic": "__consumer_offsets",
            "start-latest": False,
        }

    def _servers(self, name: str) -> list[str]:
        """Those that the client was told of, or that the cluster has."""
        state = self.monitor.watches[name].state
        nodes = [] if state is None else [f"{each.host}:{each.port}" for each in state.look.layout.nodes.values()]
        given = next(each.connection for each in self.monitor.settings.clusters if each.name == name)
        said = given.get("bootstrap-server")
        return str(said).split(",") if said else nodes


def _profile() -> Json:
    return {"name": "", "client-id": CLIENT_ID, "kafka-version": "", "tls": None, "sasl": None}


def _pattern(wanted: Wanted) -> str:
    return "" if wanted.allow is None else wanted.allow.pattern


def _notifier(settings: NotifierSettings) -> Json:
    sender, when = settings.sender, settings.when
    shown: Json = {
        "class-name": "email" if isinstance(sender, MailSender) else "http",
        "group-allowlist": _pattern(settings.wanted),
        "interval": round(when.every_s),
        "threshold": int(when.threshold),
        "send-close": when.send_close,
    }
    if isinstance(sender, HttpSender):
        shown |= {"timeout": round(sender.timeout_s), "keepalive": 0, "extra-ca": "", "noverify": ""}
        shown |= _call("open", sender.opening) | _call("close", sender.closing) | {"extra": {}}
    elif isinstance(sender, MailSender):
        body = "" if sender.body is None else sender.body.template
        shown |= {
            "template-open": body, "template-close": body, "extra": {}, "server": sender.server, "port": sender.port,
            "auth-type": "" if sender.username is None else "plain", "username": sender.username or "",
            "from": sender.sender, "to": ", ".join(sender.to), "extra-ca": "", "noverify": "",
        }  # fmt: skip
    return shown


def _call(name: str, call: Call) -> Json:
    body = "" if call.body is None else call.body.template
    return {f"url-{name}": shown_url(call.url.template), f"method-{name}": call.method, f"template-{name}": body}
