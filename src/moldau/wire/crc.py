"""CRC-32C, the checksum of record batches and log files, in hardware where there is any.

The crc32c package looks up its own version when imported, which drags in importlib.metadata, email and argparse: 20 ms
and 2 MB of a broker that starts in a few hundred. Its extension module needs none of that, so it is loaded alone.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec


def _load() -> Callable[..., int]:
    package = find_spec("crc32c")
    spec = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        import crc32c as whole

        fallback: Callable[..., int] = whole.crc32c
        return fallback
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., int] = module.crc32c
    return function


crc32c: Callable[..., int] = _load()
