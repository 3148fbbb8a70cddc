"""The real OPA, one process for a run: the level of the language, and Gatekeeper's."""

from collections.abc import Iterator

import pytest

from tests.differential.oracle import Oracle
from tests.programs import Programs


@pytest.fixture(scope="session")
def opa(program: Programs) -> Iterator[Oracle]:
    """OPA 1.22."""
    with Oracle(program("tests/oracles/opa")) as oracle:
        yield oracle


@pytest.fixture(scope="session")
def older_opa(program: Programs) -> Iterator[Oracle]:
    """OPA 1.17.1, as in Gatekeeper v3.23."""
    with Oracle(program("tests/oracles/opa-1.17.1")) as oracle:
        yield oracle
