"""`moldau profile`: name clusters, and say which one is meant."""

from __future__ import annotations

import json
import os
import re
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moldau.cli.actions import action_parser, run_action
from moldau.cli.completion.kinds import PROFILE
from moldau.cli.connection import split_pair
from moldau.cli.failures import OK, CommandFailed, UsageError, meant
from moldau.cli.output import add_output_option, print_rows
from moldau.cli.profiles import (
    BOOTSTRAP_SERVER,
    CLIENT,
    COMMAND_CONFIG,
    KEYS,
    check,
    of_process,
    project_file,
    read_config,
    user_file,
)

EXAMPLES = f"""\
Keys: bootstrap-server, command-config (a file of client properties), timeout, output, registry (the URL of a schema
registry); any other key with a dot in it is a client property. They are kept in ~/.config/moldau/config.toml; a project
may have a moldau.toml of the same form.

What wins: the command line, then MOLDAU_BOOTSTRAP_SERVERS, MOLDAU_COMMAND_CONFIG, MOLDAU_TIMEOUT, MOLDAU_OUTPUT and
MOLDAU_REGISTRY, then the profile (--profile, MOLDAU_PROFILE, or the one in use), then the project's own settings.

examples:
  moldau profile create staging {BOOTSTRAP_SERVER}=kafka-1:9092 output=wide
  moldau profile create prod {BOOTSTRAP_SERVER}=kafka:9093 {COMMAND_CONFIG}=/etc/kafka/client.properties
  moldau profile use staging
  moldau profile list
  moldau topics list --profile prod
"""

LOGIN = re.compile(r"//[^/@]+@")
HIDDEN = ("password", "secret", "jaas.config", "key.pem", "auth.user.info", "auth.token")

Content = dict[str, Any]


def main(arguments: list[str]) -> int:
    return run_action(parse(arguments))


def parse(arguments: list[str]) -> Namespace:
    parser = action_parser("profile", "Name clusters, and say which one is meant.", EXAMPLES)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the profiles there are; the one in use has a star")
    listing.set_defaults(action=list_profiles)
    add_output_option(listing)
    showing = actions.add_parser("show", help="what holds now, and where it stands")
    showing.set_defaults(action=show)
    showing.add_argument("profile", metavar=PROFILE, nargs="?", help="default: the one in use")
    add_output_option(showing)
    creating = actions.add_parser("create", help="a new profile, or other settings of one")
    creating.set_defaults(action=create)
    creating.add_argument("name", metavar="NAME")
    creating.add_argument("settings", metavar="KEY=VALUE", nargs="+")
    using = actions.add_parser("use", help="take this one where none is named")
    using.set_defaults(action=use)
    using.add_argument("name", metavar=PROFILE)
    deleting = actions.add_parser("delete", help="forget a profile")
    deleting.set_defaults(action=delete)
    deleting.add_argument("name", metavar=PROFILE)
    return parser.parse_args(arguments)


def list_profiles(options: Namespace) -> int:
    place = project_file(Path.cwd())
    files = [read_config(user_file(os.environ)), read_config(place) if place else None]
    used = of_process(None).profile
    rows = [
        {
            "profile": name,
            "used": "*" if name == used else None,
            "bootstrap-server": settings.get(BOOTSTRAP_SERVER),
            "file": str(file.path),
        }
        for file in files
        if file is not None
        for name, settings in file.profiles.items()
    ]
    print_rows(rows, columns=("profile", "used", "bootstrap-server"), more=("file",), output=options.output)
    return OK


def show(options: Namespace) -> int:
    known = of_process(options.profile)
    rows = [
        {"key": key, "value": without_login(said.value), "where": said.where} for key, said in known.settings.items()
    ]
    rows += [{"key": key, "value": hidden(key, value), "where": CLIENT} for key, value in known.client.items()]
    print_rows(rows, columns=("key", "value", "where"), output=options.output)
    return OK


def without_login(value: str) -> str:
    """A registry's URL may have one."""
    return LOGIN.sub("//(hidden)@", value)


def hidden(key: str, value: str) -> str:
    return "(hidden)" if key.endswith(HIDDEN) else value


def create(options: Namespace) -> int:
    content = own_content()
    profile: Content = content.setdefault("profiles", {}).setdefault(options.name, {})
    for pair in options.settings:
        key, value = split_pair(pair, option="profile")
        if key in KEYS and key != CLIENT:
            profile[key] = str(Path(value).absolute()) if key == COMMAND_CONFIG else value
        elif "." in key:
            profile.setdefault(CLIENT, {})[key] = value
        else:
            raise UsageError(f"unknown key {key!r}{meant(key, KEYS)}; a client property has a dot in its name")
    write(content)
    print(f"profile {options.name} is in {user_file(os.environ)}; take it with: moldau profile use {options.name}")
    return OK


def use(options: Namespace) -> int:
    of_process(options.name)  # says whether it is there
    content = own_content()
    content["profile"] = options.name
    write(content)
    print(f"profile {options.name} is used where none is named")
    return OK


def delete(options: Namespace) -> int:
    content = own_content()
    profiles = content.get("profiles", {})
    if options.name not in profiles:
        raise CommandFailed(f"there is no profile {options.name!r} in {user_file(os.environ)}")
    del profiles[options.name]
    if content.get("profile") == options.name:
        del content["profile"]
    write(content)
    print(f"deleted profile {options.name}")
    return OK


def own_content() -> Content:
    found = read_config(user_file(os.environ))
    return {} if found is None else json.loads(json.dumps(found.content))


def write(content: Content) -> None:
    """Whole or not at all, and for nobody else: passwords may be among it."""
    path = user_file(os.environ)
    check(content, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(as_toml(content))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def as_toml(content: Mapping[str, Any], table: str = "") -> str:
    """Texts, numbers and tables are all there is; a text of JSON is one of TOML, and so is a quoted key."""
    tables = [(_key(key), value) for key, value in content.items() if isinstance(value, dict)]
    lines = [f"{_key(key)} = {_quoted(value)}" for key, value in content.items() if not isinstance(value, dict)]
    if table and lines:
        lines.insert(0, f"[{table}]")
    inner = [as_toml(value, f"{table}.{key}" if table else key) for key, value in tables]
    return "\n".join([*lines, "", *inner]) if lines else "\n".join(inner)


def _key(key: str) -> str:
    is_bare = key.replace("-", "").replace("_", "").isalnum() and key.isascii()
    return key if is_bare else _quoted(key)


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
