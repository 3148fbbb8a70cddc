"""The real OPA and Gatekeeper's mutation, one process of each for a run."""

from collections.abc import Iterator

import pytest

from tests.differential.oracle import Oracle
from tests.programs import Programs


@pytest.fixture(scope="session")
def opa(program: Programs) -> Iterator[Oracle]:
    """OPA 1.22.4."""
    with Oracle(program("tests/oracles/opa")) as oracle:
        yield oracle


@pytest.fixture(scope="session")
def older_opa(program: Programs) -> Iterator[Oracle]:
    """OPA 1.17.1, as in Gatekeeper v3.23."""
    with Oracle(program("tests/oracles/opa-1.17.1")) as oracle:
        yield oracle


@pytest.fixture(scope="session")
def gatekeeper_mutation(program: Programs) -> Iterator[Oracle]:
    """Gatekeeper v3.23.1's own mutators and ExpansionTemplates."""
    with Oracle(program("tests/oracles/mutation")) as oracle:
        yield oracle
