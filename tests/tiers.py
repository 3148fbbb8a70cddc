"""Two tiers: tests that need nothing but Python, and tests that run programs of others.

`make test` runs the first, `make test-all` both. A test is in the second tier because it asks for
the fixture `program`, itself or through another fixture, or because it is marked `programs`. In
the first tier `tests.programs.build` fails, and a test of the second that runs no program fails
too, so that no test stands in the wrong one unseen.

Workers beside each other share no fixture. Tests that share a cluster, or a server of their
module, go to one worker, so that it is started once. It ends with the last of these tests and not
with the run: an API server that nobody asks takes CPU from the tests that still run.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from _pytest.fixtures import SubRequest
from _pytest.nodeid import NodeId

from tests import programs

FIXTURE = "program"
CHEAP = {
    FIXTURE,
    "programs",
    "request",
    "tmp_path_factory",
    "pytestconfig",
    "record_testsuite_property",
    "worker_id",
    "testrun_uid",
    "no_leftovers_of_module",
}
"""Fixtures of a whole run that cost nothing to have in each worker."""

SYSTEM = programs.ROOT / "tests" / "system"
SLOW_SECONDS, REPLICAS_SECONDS, ANY_SECONDS = 3.0, 6.0, 0.2
"""How long a test takes that says no more than `slow`, one of replicas at a control plane, and any
other. Only the order in which workers begin goes by it."""

_users: set[pytest.FixtureDef[object]] = set()
"""Fixtures in whose set-up a program was asked for."""

_standing: dict[pytest.FixtureDef[object], SubRequest] = {}
"""Fixtures of the whole run that are set up, in that order, with the requests for them."""


def pytest_itemcollected(item: pytest.Item) -> None:
    if FIXTURE in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.programs)
    if group := shared_by(item):
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("loadgroup", default=False):
        # How a worker of pytest-xdist tells the group: 3.8 writes it where pytest 9 does not look.
        for item in items:
            for mark in item.iter_markers("xdist_group"):
                item._id = NodeId.parse(f"{item.nodeid}@{mark.args[0]}")
    # The long ones first, or the last of them keeps one worker when the others have ended.
    totals: defaultdict[str, float] = defaultdict(float)
    for item in items:
        totals[_unit(item)] += seconds_of(item)
    # Those of one unit side by side, as a worker runs them: what they share is started once.
    firsts: dict[str, int] = {}
    for item in items:
        firsts.setdefault(_unit(item), len(firsts))
    items.sort(key=lambda item: (-totals[_unit(item)], firsts[_unit(item)]))


def _unit(item: pytest.Item) -> str:
    """Returns the unit that one worker runs as a whole."""
    mark = item.get_closest_marker("xdist_group")
    return mark.args[0] if mark is not None else item.nodeid


def seconds_of(item: pytest.Item) -> float:
    """About how long a test takes on a quiet machine: `slow` says so, or says that it is some."""
    mark = item.get_closest_marker("slow")
    if mark is not None and mark.args:
        return float(mark.args[0])
    if item.path.is_relative_to(SYSTEM):
        return REPLICAS_SECONDS
    return SLOW_SECONDS if mark is not None else ANY_SECONDS


def shared_by(item: pytest.Item) -> str:
    """Names the tests that should run in one worker with this one; "" where it may run anywhere."""
    if not isinstance(item, pytest.Function):
        return ""
    found = item._fixtureinfo.name2fixturedefs.items()
    scopes = {name: definitions[-1].scope for name, definitions in found if name not in CHEAP}
    if sessions := [name for name, scope in scopes.items() if scope == "session"]:
        return min(sessions)  # the base of the others is first in the alphabet
    if "module" in scopes.values():
        return item.path.name
    return ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    in_second_tier = item.get_closest_marker("programs") is not None
    with programs.refused_to("" if in_second_tier else item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: SubRequest
) -> Iterator[None]:
    before = programs.request_count()
    try:
        return (yield)
    finally:
        if programs.request_count() != before:
            _users.add(fixturedef)
        if fixturedef.scope == "session" and fixturedef.argname not in CHEAP:
            _standing[fixturedef] = request


def pytest_fixture_post_finalizer(fixturedef: pytest.FixtureDef[object]) -> None:
    _standing.pop(fixturedef, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    try:
        return (yield)
    finally:
        if nextitem is not None and _unit(nextitem) != _unit(item):
            with ExitStack() as stack:
                for fixturedef, request in _standing.items():
                    stack.callback(fixturedef.finish, request)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = programs.request_count()
    result = yield
    if item.get_closest_marker("programs") is not None and isinstance(item, pytest.Function):
        definitions = item._fixtureinfo.name2fixturedefs.values()
        needed = any(one in _users for found in definitions for one in found)
        assert needed or programs.request_count() != before, (
            "runs no program: it belongs to the first tier, without the fixture `program`"
        )
    return result
