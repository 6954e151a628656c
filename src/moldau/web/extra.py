"""Whether the packages that servers over HTTP need are there: the extra `moldau[registry]`, and `moldau[monitor]`."""

from __future__ import annotations

from importlib.util import find_spec

NEEDED = ("starlette", "uvicorn", "httptools")


def is_installed() -> bool:
    return all(find_spec(each) is not None for each in NEEDED)
