"""Checks rights of visitors by SubjectAccessReviews; keeps the answers for 30 seconds."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook.cluster import authorization
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import ACCESS_REVIEWS
from webhook.console import visibility

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.console.picture import Picture
    from webhook.console.visitor import Right, Visitor

REMEMBERED_SECONDS: Final = 30.0
REMEMBERED_MAX: Final = 20_000
"""The answers kept, some 300 bytes each."""

AT_ONCE: Final = 16
RIGHTS_SECONDS: Final = 10.0
"""The time limit for all rights of one page."""

PICTURES_MAX: Final = 4
"""The filtered pictures kept for the next page; visitors with the same rights share one."""


class RightsUnknown(Exception):
    """The rights of a visitor cannot be determined; the text says why."""


class AccessAuthority(Protocol):
    """An API server."""

    async def request(
        self, method: str, path: str, *, body: Any = None, deadline_seconds: float = 30.0
    ) -> Any:
        """Returns the decoded answer."""


class Rights:
    """Checks the rights of visitors; used on one event loop."""

    def __init__(
        self,
        server: Callable[[], AccessAuthority | None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``server`` returns the API server's client, or None before it exists."""
        self._server = server
        self._now = now
        self._remembered: OrderedDict[tuple[Visitor, Right], tuple[float, bool]] = OrderedDict()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._pictures: OrderedDict[tuple[int, frozenset[Right]], tuple[Picture, Picture]] = (
            OrderedDict()
        )

    async def may(self, visitor: Visitor, right: Right) -> bool:
        """Whether the visitor has a right, by the current RBAC; raises :class:`RightsUnknown`."""
        return right in await self.granted(visitor, [right])

    async def granted(self, visitor: Visitor, rights: Iterable[Right]) -> frozenset[Right]:
        """Returns the rights that the visitor has; raises :class:`RightsUnknown`."""
        distinct = list(dict.fromkeys(rights))
        grants = {
            right: known for right in distinct if (known := self._known(visitor, right)) is not None
        }
        missing = [right for right in distinct if right not in grants]
        if missing:
            grants |= await self._ask_all(visitor, missing)
        return frozenset(grant for grant, is_granted in grants.items() if is_granted)

    async def _ask_all(self, visitor: Visitor, missing: Iterable[Right]) -> dict[Right, bool]:
        try:
            async with asyncio.timeout(RIGHTS_SECONDS), asyncio.TaskGroup() as tasks:
                pending = {right: tasks.create_task(self._ask(visitor, right)) for right in missing}
        except TimeoutError:
            raise RightsUnknown(
                f"the API server did not say what you may read within {RIGHTS_SECONDS:g} s"
            ) from None
        except ExceptionGroup as group:
            failures, bugs = group.split((ApiError, ApiUnreachable))
            if bugs is not None or failures is None:
                raise
            raise RightsUnknown(_reasons(failures)) from None
        return {right: task.result() for right, task in pending.items()}

    async def seen(self, visitor: Visitor, picture: Picture) -> Picture:
        """Returns the part of a picture that the visitor may see; raises :class:`RightsUnknown`."""
        granted = await self.granted(visitor, visibility.broad(picture))
        further, unchecked = visibility.narrow(picture, granted)
        if further:
            granted |= await self.granted(visitor, further)
        key = id(picture), granted
        known = self._pictures.get(key)
        # A new picture may have the id of a deleted one.
        if known is None or known[0] is not picture:
            for old in [stale for stale, pair in self._pictures.items() if pair[0] is not picture]:
                del self._pictures[old]
            known = picture, visibility.seen(picture, granted, unchecked)
            self._pictures[key] = known
            while len(self._pictures) > PICTURES_MAX:
                self._pictures.popitem(last=False)
        return known[1]

    def _known(self, visitor: Visitor, right: Right) -> bool | None:
        remembered = self._remembered.get((visitor, right))
        return remembered[1] if remembered is not None and remembered[0] > self._now() else None

    async def _ask(self, visitor: Visitor, right: Right) -> bool:
        server = self._server()
        if server is None:
            raise ApiUnreachable("the API server has not been asked yet")
        body = authorization.access_review(
            {"username": visitor.user, "groups": visitor.groups},
            {"resourceAttributes": {name: text for name, text in asdict(right).items() if text}},
        )
        path = ACCESS_REVIEWS.collection()
        async with self._places:
            response = await server.request(
                "POST", path, body=body, deadline_seconds=RIGHTS_SECONDS
            )
        is_granted = authorization.is_granted(response)
        self._remember(visitor, right, is_granted=is_granted)
        return is_granted

    def _remember(self, visitor: Visitor, right: Right, *, is_granted: bool) -> None:
        self._remembered[visitor, right] = self._now() + REMEMBERED_SECONDS, is_granted
        self._remembered.move_to_end((visitor, right))
        while len(self._remembered) > REMEMBERED_MAX:
            self._remembered.popitem(last=False)


def _reasons(group: ExceptionGroup[Exception]) -> str:
    first: Exception = group
    while isinstance(first, ExceptionGroup):
        first = first.exceptions[0]
    if isinstance(first, ApiError) and first.status == 403:
        return (
            "this console's account may not ask what you may read: it needs the right to create"
            f" subjectaccessreviews.authorization.k8s.io ({first})"
        )
    return f"what you may read cannot be asked of the API server: {first}"
