"""Fixtures that tests of every folder share."""

import gc
import os
import sys
import warnings
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

from tests import programs, verified_code
from tests.catch_all_webhooks import install_catch_all_webhooks
from tests.cluster import Cluster
from tests.new_examples import NEW_EXAMPLES
from tests.programs import Programs

# A slow machine is no fault: what may not take long is bounded by the code itself and by pytest-timeout.
settings.register_profile("waddle", deadline=None, derandomize=True)
settings.register_profile("new", deadline=None, max_examples=max(NEW_EXAMPLES, 1))
settings.load_profile("new" if NEW_EXAMPLES else "waddle")

verified_code.install()

# gRPC's fork handlers begin its threads anew in a child that is still to execute its program, and
# abort it as its descriptors are closed: one in nine of such children, while a channel is open.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

# Memory for time: gator and Helm run for a moment, and a fifth of it goes to collecting garbage.
os.environ.setdefault("GOGC", "400")

# The command line keeps what it compiled in the user's cache: a test that wants that says so.
os.environ["WADDLE_CACHE"] = ""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Closes the resources of a failed test with it: their warnings would fail the next test."""
    before = item.session.testsfailed
    result = yield
    if item.session.testsfailed != before:
        for name in ("last_exc", "last_type", "last_value", "last_traceback"):
            vars(sys).pop(name, None)  # they keep the frames of the failed test
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()
    return result


@pytest.fixture
def without_garbage_collection() -> Iterator[None]:
    """Syntax trees have no circles: collecting garbage among them frees nothing, in twice the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes whose memory a test bounds are not measured for coverage, which takes some itself."""
    for name in ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def program() -> Programs:
    """Gives a program of others by its name; who asks for it is in the second tier of tests."""
    return programs.program


@pytest.fixture(scope="session")
def cluster(program: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real API server that a whole run shares: use names of your own, and clean up.

    A test that restarts or harms its cluster makes one for itself with `Cluster.start`.
    """
    shared = Cluster.start(program("testcluster"), tmp_path_factory.mktemp("cluster"))
    try:
        install_catch_all_webhooks(shared.api)
        yield shared
    finally:
        shared.stop()
