"""A stand-in for the lane of slow reviews, where its answer alone matters."""

from typing import Any

from webhook.server.preparation import SlowReview
from webhook.server.responsibility import Delay


class Endless:
    """A reviewer that never comes to an end."""

    def __init__(self, worked_seconds: float = 0.0) -> None:
        self.worked_seconds = worked_seconds
        self.begun: list[SlowReview[Any]] = []

    def is_behind(self, *_: object) -> bool:
        """Returns False."""
        return False

    def begin(self, *_: object) -> Any:
        """Say nothing yet."""
        self.begun.append(SlowReview())
        self.begun[-1].worked_seconds = self.worked_seconds
        return self.begun[-1]


class Crowded:
    """A reviewer without a place for anybody."""

    def __init__(self, taken: int) -> None:
        self.taken = taken

    def is_behind(self, *_: object) -> bool:
        """Returns False."""
        return False

    def begin(self, *_: object) -> Delay:
        """Say whose the places are."""
        return Delay(places_taken=self.taken, places=64, requesters=2)
