"""Whoever follows the images of the cluster, each told of every one, also after a failure of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from typing import Any

import msgspec

from moldau.controller.image import ClusterImage

RETRY_MS = 1_000  # after which a listener that failed on an image is told again

ImageListener = Callable[[ClusterImage, ClusterImage], None]

LOGGER = logging.getLogger(__name__)


class _Subscription(msgspec.Struct, eq=False):
    """A listener, and the last image that it followed: one that failed is told of everything since then again."""

    listener: ImageListener
    followed: ClusterImage
    changed_topics: frozenset[str] = frozenset()

    def tell(self, image: ClusterImage) -> None:
        missed = self.changed_topics
        self.changed_topics |= image.changed_topics
        self.listener(self.followed, replace(image, changed_topics=self.changed_topics) if missed else image)
        self.followed, self.changed_topics = image, frozenset()


class Subscriptions:
    def __init__(self) -> None:
        self._all: list[_Subscription] = []
        self._retry: asyncio.TimerHandle | None = None
        self._image = ClusterImage()

    def add(self, listener: ImageListener, image: ClusterImage) -> Callable[[], None]:
        """From the image after this one on; returns the way out."""
        subscription = _Subscription(listener, image)
        self._all.append(subscription)
        return lambda: self._all.remove(subscription)

    async def wait_for(self, condition: Callable[[ClusterImage], bool], image: ClusterImage) -> None:
        """Until there is an image, this one or a later, of which it is true."""
        found = asyncio.Event()

        def look(_: ClusterImage, new: ClusterImage) -> None:
            if condition(new):
                found.set()

        leave = self.add(look, image)
        try:
            look(image, image)
            await found.wait()
        finally:
            leave()

    def tell(self, image: ClusterImage) -> None:
        self._image = image
        self._tell(self._all)

    def close(self) -> None:
        if self._retry is not None:
            self._retry.cancel()

    def _tell(self, subscriptions: Iterable[_Subscription]) -> None:
        """The entry is committed, so everybody must learn of it, whatever one of them does."""
        for subscription in tuple(subscriptions):
            try:
                subscription.tell(self._image)
            except Exception:
                LOGGER.exception("a listener failed on a new image; it is told again")
                self._tell_again_later()

    def _tell_again_later(self) -> None:
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(RETRY_MS / 1000, self._tell_again)

    def _tell_again(self) -> None:
        self._retry = None
        self._tell([each for each in self._all if each.followed is not self._image])


async def first_of(*ways: Coroutine[Any, Any, Any]) -> None:
    """Until one of them ends, as it does; the others are given up."""
    tasks = [asyncio.ensure_future(each) for each in ways]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
