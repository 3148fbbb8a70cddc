"""A server with the policies that most tests use, shared by the tests of a module; a stage in a cluster."""

from collections.abc import Iterator

import pytest

from tests.behaviour.serving import (
    FAILING,
    REQUIRED_LABELS,
    SLOW,
    Server,
    constraint,
    write_policies,
)
from tests.behaviour.stages import installed, stage

__all__ = ["installed", "server", "stage"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """``waddle serve`` with a deny, a warn and a dryrun constraint, a slow and a failing template."""
    policies = write_policies(
        tmp_path_factory.mktemp("policies"),
        REQUIRED_LABELS,
        constraint("needs-owner", "owner"),
        constraint("likes-team", "team", action="warn"),
        constraint("notes-cost", "cost", action="dryrun"),
        SLOW,
        FAILING,
    )
    with Server(policies, "--log-denies", "--evaluation-budget=1m") as running:
        yield running.ready()
