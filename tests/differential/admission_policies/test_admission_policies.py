"""The API server's verdict of its own policies beside ours, over policies made by a seed."""

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.differential.admission_policies.beside import (
    differences,
    our_verdict,
    policies_of,
    remove,
)
from tests.differential.admission_policies.made import cases
from tests.programs import Programs


@pytest.fixture(scope="module")
def cluster(program: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server of its own.

    Where policies with ConfigMaps for parameters came and all went, an API server sees no newer
    ConfigMap as a parameter (1.36.3, 1.37.2): it keeps the list of the first ones.
    """
    started = Cluster.start(program("testcluster"), tmp_path_factory.mktemp("cluster"))
    try:
        yield started
    finally:
        started.stop()


@pytest.mark.leaves("the API server would not see parameters that were made anew")
@pytest.mark.parametrize(
    ("mutating", "varied", "count"),
    [(False, False, 30), (False, True, 40), (True, False, 18), (True, True, 12)],
)
def test_the_api_server_says_what_we_say(
    cluster: Cluster, mutating: bool, varied: bool, count: int
) -> None:
    made = list(cases(0, count, mutating=mutating, varied=varied))
    try:
        assert list(differences(cluster.api, made)) == []
    finally:
        remove(cluster.api, made)
    # Of a seed that only admits, or only refuses, nothing would be learnt.
    usable = [one for one in made if "Unauthorized" not in str(one.policy)]
    verdicts = [
        bool(our_verdict(policies_of([one]), request, request.stored)[0])
        for one in usable
        for request in one.requests
    ]
    assert {True, False} == set(verdicts)
