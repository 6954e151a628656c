"""What `--add-config`, `--add-config-file` and `--delete-config` say."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from moldau.cli.failures import UsageError

# Not within square brackets: whatever follows has an opening one before the next closing one, or none at all.
_OUTSIDE = r"(?=[^\]]*(?:\[|$))"
_COMMA = re.compile("," + _OUTSIDE)
_EQUALS = re.compile(r"\s*=\s*" + _OUTSIDE)
_KEY = re.compile(r"[a-zA-Z0-9._-]*")
_FORM = (
    'Invalid entity config: all configs to be added must be in the format "key=val" or  "key=[val1,val2]"'
    " to group values which contain commas."
)


@dataclass(frozen=True, slots=True)
class Changes:
    added: dict[str, str]
    deleted: Sequence[str]

    @property
    def keys(self) -> list[str]:
        return [*self.added, *self.deleted]


def changes(options: Namespace) -> Changes:
    added = from_file(options.add_config_file) if options.add_config_file else {}
    if options.add_config is not None:
        added |= from_text(options.add_config)
    for key in added:
        if not _KEY.fullmatch(key):
            raise UsageError(f"Invalid character found for config key: {key}")
    return Changes(added, [key.strip() for each in options.delete_config for key in each.split(",")])


def from_text(text: str) -> dict[str, str]:
    pairs = [_EQUALS.split(each) for each in _COMMA.split(text)]
    if any(len(pair) != 2 for pair in pairs):
        raise UsageError(_FORM)
    return {key.strip(): re.sub(r"[\[\]]", "", value).strip() for key, value in pairs}


def from_file(path: str) -> dict[str, str]:
    """As Java reads properties: the key ends at an equals sign, a colon or a space, and a line may go on."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as wrong:
        raise UsageError(f"cannot read {path}: {wrong.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {path}: it is no text in UTF-8") from None
    found = {}
    for line in re.sub(r"\\\r?\n[ \t]*", "", text).splitlines():
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            key, _, value = re.sub(r"\s*[=:\s]\s*", "=", line.lstrip(), count=1).partition("=")
            found[key] = value
    return found
