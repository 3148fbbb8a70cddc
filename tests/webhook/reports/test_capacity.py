"""The bound on reports: counted seldom, told once."""

import asyncio
import io
import json
from typing import Any, cast

from webhook.log import Log
from webhook.reports.capacity import COUNT_SECONDS, REACHED_SECONDS, Capacity
from webhook.reports.report_api import WGPOLICY


class Counted:
    """An API server's answer to a list of one: how many there are."""

    def __init__(self, number):
        self.number = number
        self.request_count = 0
        self.ends = []
        """Called before the first answer is there."""

    async def request(self, method, path, *, query):
        assert (method, query) == ("GET", {"limit": "1"})
        self.request_count += 1
        number = self.number if "cluster" not in path else 0
        more = {"remainingItemCount": number - 1} if number > 1 else {}
        while self.ends:
            self.ends.pop()()
        return {"items": [{}] * min(number, 1), "metadata": more}


class Fixture:
    """A capacity whose clock a test moves."""

    def __init__(self, number, reports_max):
        self.now = 0.0
        self.server = Counted(number)
        self.lines = io.BytesIO()
        log = Log(self.lines.write).logger("test")
        self.capacity = Capacity(
            cast("Any", self.server), WGPOLICY, reports_max, log, lambda: self.now
        )

    def asks(self, times=1, *, settles=True):
        answers = [asyncio.run(self.capacity.has_room()) for _ in range(times)]
        for _ in range(answers.count(True) if settles else 0):
            self.capacity.settle(is_created=True)
        return answers

    @property
    def warnings(self):
        lines = self.lines.getvalue().splitlines()
        return sum("--report-max-resources" in json.loads(line)["msg"] for line in lines)


def test_reports_are_counted_once_for_many_and_those_being_made_count():
    made = Fixture(number=3, reports_max=5)
    assert made.asks(4) == [True, True, False, False]
    assert made.server.request_count == 2  # of both kinds


def test_a_count_forgets_no_report_that_is_being_made():
    """On a slow machine a sweep counted before the last creation was done, and one more was made."""
    made = Fixture(number=0, reports_max=3)
    assert made.asks(3, settles=False) == [True, True, True]
    made.server.number = 2
    made.now += COUNT_SECONDS
    assert asyncio.run(made.capacity.room()) == 0
    assert made.asks() == [False]
    for _ in range(3):
        made.capacity.settle(is_created=True)
    made.now += COUNT_SECONDS
    assert asyncio.run(made.capacity.room()) == 1


def test_a_count_forgets_no_report_whose_creation_ends_meanwhile():
    """The API server had counted before it; the one that was refused is not there."""
    made = Fixture(number=0, reports_max=3)
    assert made.asks(2, settles=False) == [True, True]
    made.now += COUNT_SECONDS
    made.server.ends = [
        lambda: made.capacity.settle(is_created=True),
        lambda: made.capacity.settle(is_created=False),
    ]
    assert made.asks(3) == [True, True, False]


def test_a_deletion_that_a_count_has_seen_is_not_counted_again():
    made = Fixture(number=5, reports_max=5)
    assert made.asks() == [False]
    begun = made.capacity.counts
    made.server.number = 4
    made.now += COUNT_SECONDS
    assert asyncio.run(made.capacity.room()) == 1
    made.capacity.deleted(begun)
    assert made.asks(2) == [True, False]


def test_a_creation_that_was_refused_leaves_its_room():
    made = Fixture(number=4, reports_max=5)
    assert made.asks(2, settles=False) == [True, False]
    made.capacity.settle(is_created=False)
    assert made.asks(2) == [True, False]


def test_what_was_deleted_makes_room():
    made = Fixture(number=5, reports_max=5)
    assert made.asks() == [False]
    made.capacity.deleted(made.capacity.counts)
    assert made.asks(2) == [True, False]
    made.server.number = 2
    made.now += COUNT_SECONDS
    assert made.asks(4) == [True, True, True, False]


def test_the_bound_is_reported_once_and_forgotten_after_a_while():
    made = Fixture(number=5, reports_max=5)
    assert not made.capacity.is_reached
    made.asks(3)
    assert made.capacity.is_reached
    assert made.warnings == 1
    made.now += REACHED_SECONDS
    assert not made.capacity.is_reached
    made.asks()
    assert made.warnings == 2


def test_the_room_is_what_is_left_now():
    made = Fixture(number=3, reports_max=5)
    assert asyncio.run(made.capacity.room()) == 2
    made.server.number = 9
    assert asyncio.run(made.capacity.room()) == 0
