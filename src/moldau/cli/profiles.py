"""What a user does not say each time: profiles of clusters, a project's file, the environment.

    ~/.config/moldau/config.toml          profile = "staging"
                                          [profiles.staging]
                                          bootstrap-server = "kafka-1:9093"
                                          output = "wide"
                                          timeout = 10
                                          command-config = "staging.properties"
                                          registry = "http://registry-1:8081"
                                          [profiles.staging.client]
                                          "security.protocol" = "ssl"

    moldau.toml, in this folder           the same, for those who work in a project; its settings may also stand
    or one above it                       outside of any profile

What wins: the command line, then MOLDAU_BOOTSTRAP_SERVERS, MOLDAU_COMMAND_CONFIG, MOLDAU_TIMEOUT, MOLDAU_OUTPUT and
MOLDAU_REGISTRY, then the profile, then the project. The profile is --profile, MOLDAU_PROFILE, the project's or the
user's. A profile of the user's own is all that says how its cluster is reached: passwords of it go to no server that a
project's file names, for anybody may have written that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moldau.cli.failures import UsageError, meant

PROJECT_FILE = "moldau.toml"
BOOTSTRAP_SERVER, COMMAND_CONFIG, TIMEOUT, OUTPUT, REGISTRY, CLIENT = (
    "bootstrap-server", "command-config", "timeout", "output", "registry", "client",
)  # fmt: skip
VARIABLES = {
    "MOLDAU_BOOTSTRAP_SERVERS": BOOTSTRAP_SERVER,
    "MOLDAU_COMMAND_CONFIG": COMMAND_CONFIG,
    "MOLDAU_TIMEOUT": TIMEOUT,
    "MOLDAU_OUTPUT": OUTPUT,
    "MOLDAU_REGISTRY": REGISTRY,
}
PROFILE_VARIABLE = "MOLDAU_PROFILE"
OF_ANYBODY = (TIMEOUT, OUTPUT)  # which say nothing of servers, nor of how they are trusted
KEYS = (BOOTSTRAP_SERVER, COMMAND_CONFIG, TIMEOUT, OUTPUT, REGISTRY, CLIENT)


@dataclass(frozen=True, slots=True)
class Said:
    """A value, and where it stands, for messages."""

    value: str
    where: str


@dataclass(frozen=True, slots=True)
class Defaults:
    settings: Mapping[str, Said] = field(default_factory=dict)
    client: Mapping[str, str] = field(default_factory=dict)
    """Client properties."""
    profile: str | None = None

    def value(self, key: str) -> str | None:
        said = self.settings.get(key)
        return said.value if said else None


@dataclass(frozen=True, slots=True)
class ConfigFile:
    path: Path
    content: Mapping[str, Any]

    @property
    def profile(self) -> str | None:
        return self.content.get("profile")

    @property
    def profiles(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.content.get("profiles", {})
        return found


def user_file(environment: Mapping[str, str]) -> Path:
    folder = environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME") or Path.home(), ".config")
    return Path(folder, "moldau", "config.toml")


def project_file(folder: Path) -> Path | None:
    """The nearest one, up to the root of a repository."""
    for each in (folder, *folder.parents):
        if (each / PROJECT_FILE).is_file():
            return each / PROJECT_FILE
        if (each / ".git").exists():
            return None
    return None


def defaults(environment: Mapping[str, str], folder: Path, wanted: str | None = None) -> Defaults:
    """`wanted` is the profile that the command line names."""
    place = project_file(folder)
    user, project = read_config(user_file(environment)), read_config(place) if place else None
    said = (wanted, environment.get(PROFILE_VARIABLE), project and project.profile, user and user.profile)
    name = next((str(each) for each in said if each), None)
    settings: dict[str, Said] = {}
    client: dict[str, str] = {}
    is_users = user is not None and name in user.profiles
    if project is not None:
        content = {key: value for key, value in project.content.items() if key in OF_ANYBODY or not is_users}
        _take(content, project.path, str(project.path), settings, client)
    if name:
        _take_profile(name, [each for each in (user, project) if each is not None], settings, client)
    for variable, key in VARIABLES.items():
        if environment.get(variable):
            settings[key] = Said(environment[variable], variable)
    return Defaults(settings, client, name)


def _take_profile(name: str, files: list[ConfigFile], settings: dict[str, Said], client: dict[str, str]) -> None:
    """Of the first file that has it."""
    known = [each for file in files for each in file.profiles]
    if name not in known:
        there = f"; there are {', '.join(known)}" if known else "; make one with: moldau profile create NAME"
        raise UsageError(f"there is no profile {name!r}{meant(name, known) or there}")
    file = next(each for each in files if name in each.profiles)
    _take(file.profiles[name], file.path, f"profile {name} in {file.path}", settings, client)


def _take(
    content: Mapping[str, Any], path: Path, where: str, settings: dict[str, Said], client: dict[str, str]
) -> None:
    for key, value in content.items():
        if key == CLIENT:
            client.update({name: _text(each) for name, each in value.items()})
        elif key == COMMAND_CONFIG:
            settings[key] = Said(str(path.parent / str(value)), where)
        elif key in KEYS:
            settings[key] = Said(_text(value), where)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_config(path: Path) -> ConfigFile | None:
    """None if there is no such file. A UsageError names the key that is wrong."""
    try:
        text = path.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as wrong:
        raise UsageError(f"cannot read {path}: {getattr(wrong, 'strerror', None) or 'it is no UTF-8'}") from None
    import tomllib

    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise UsageError(f"{path}: {wrong}") from None
    check(content, path)
    return ConfigFile(path, content)


def check(content: Mapping[str, Any], path: Path) -> None:
    profiles = content.get("profiles", {})
    if not isinstance(profiles, dict) or not all(isinstance(each, dict) for each in profiles.values()):
        raise UsageError(f"{path}: profiles: expected tables such as [profiles.staging]")
    if not isinstance(content.get("profile", ""), str):
        raise UsageError(f"{path}: profile: expected the name of one")
    own = {key: value for key, value in content.items() if key not in ("profile", "profiles")}
    for where, settings in (("", own), *((f"profiles.{name}.", each) for name, each in profiles.items())):
        for key, value in settings.items():
            if key not in KEYS:
                raise UsageError(f"{path}: unknown key {where}{key}{meant(key, KEYS) or f'; known are {_words(KEYS)}'}")
            is_fine = isinstance(value, dict) if key == CLIENT else isinstance(value, str | int | float)
            if not is_fine:
                raise UsageError(
                    f"{path}: {where}{key}: expected {'a table' if key == CLIENT else 'a text or a number'}"
                )


def _words(words: tuple[str, ...]) -> str:
    return ", ".join(words)


def of_process(wanted: str | None) -> Defaults:
    return defaults(os.environ, Path.cwd(), wanted)
