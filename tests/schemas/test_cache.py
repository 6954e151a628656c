"""What a client of a registry keeps has an end, however large each schema is."""

from __future__ import annotations

from moldau.schemas.registry_client.cache import Cache


def kept(cache: Cache[int, str]) -> list[int]:
    return [key for key in range(10) if cache.get(key) is not None]


def test_many_small_entries() -> None:
    cache: Cache[int, str] = Cache(3, chars_max=100)
    for key in range(5):
        cache.put(key, "x", chars=1)
    assert kept(cache) == [2, 3, 4]


def test_few_large_entries() -> None:
    """A thousand schemas of a megabyte would be some gigabytes, parsed."""
    cache: Cache[int, str] = Cache(1_000, chars_max=100)
    for key in range(5):
        cache.put(key, "x", chars=40)
    assert kept(cache) == [3, 4]
    cache.put(4, "other", chars=10)
    cache.put(5, "x", chars=40)
    assert kept(cache) == [3, 4, 5], "what is put again counts once"
    cache.forget(3)
    cache.put(6, "x", chars=50)
    assert kept(cache) == [4, 5, 6]
    cache.put(7, "x", chars=1_000)
    assert kept(cache) == [7], "the last one stays, or it would never be of use"
