"""A test that leaves an object in a control plane of others, or takes one of theirs, fails itself.

Otherwise another test fails, and only in some orders. Two lists of etcd's keys for each test take a
few milliseconds. These are not compared:

- what the API server makes for itself, some of it after its start, and Events and Leases;
- Namespaces and accounts: an empty one violates nothing, and an account alone has no rights;
- CRDs of this repository, but for openreports.io: who needs one applies it, and nobody needs it gone;
- what ends with a template, a policy or a Pod, by the garbage collector or by replicas;
- what a test makes that is marked `leaves`.
"""

import base64
import json
import urllib.request
from collections.abc import Generator, Iterable, Iterator

import pytest

from tests.cluster import RUNNING, Cluster
from tests.patience import PATIENCE_SECONDS

IGNORED = (
    *("apiregistration.k8s.io/", "configmaps/kube-system/", "events/", "flowschemas/", "health"),
    *("ipaddresses/", "leases/", "masterleases/", "namespaces/", "peerserverleases/"),
    *("prioritylevelconfigurations/", "ranges/", "serviceaccounts/", "servicecidrs/"),
    *(
        "services/specs/default/kubernetes",
        "services/endpoints/default/",
        "endpointslices/default/",
    ),
    *("policy.waddle.dev/policyrevisions/", "status.gatekeeper.sh/"),
)
CRD = "apiextensions.k8s.io/customresourcedefinitions/"
TEMPLATE = "templates.gatekeeper.sh/constrainttemplates/"
OUR_GROUPS = ("gatekeeper.sh", "waddle.dev", "wgpolicyk8s.io")
CONSTRAINT = "constraints.gatekeeper.sh/"
GENERATED = "gatekeeper-"
"""The prefix of generated policies and bindings."""

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMES_ALONE = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

_nobodys: dict[str, set[str]] = {}
"""Keys of fixtures of the whole run, and keys seen while they were deleted, by the URL of etcd."""


def keys(cluster: Cluster) -> set[str]:
    """The keys of all objects that are compared."""

    def encoded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    bounds = {"key": encoded("/registry/"), "range_end": encoded("/registry0"), "keys_only": True}
    request = urllib.request.Request(f"{cluster.etcd}/v3/kv/range", json.dumps(bounds).encode())
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        found = json.load(answer)["kvs"]
    stored = {base64.b64decode(item["key"]).decode().removeprefix("/registry/") for item in found}
    templates = {key.removeprefix(TEMPLATE) for key in stored if key.startswith(TEMPLATE)}
    return {key for key in stored if not _ends_by_itself(key, templates)}


def _ends_by_itself(key: str, templates: set[str]) -> bool:
    """Whether nobody has to remove an object, where these templates exist."""
    kind, _, name = key.rpartition("/")
    if key.startswith(CRD):
        return name.partition(".")[2].endswith(OUR_GROUPS)
    if key.startswith(CONSTRAINT):
        return key.split("/")[1] not in templates
    if kind.startswith("validatingadmissionpolic"):
        return name.startswith(GENERATED)
    return key.startswith(IGNORED)


def left_over(cluster: Cluster, before: set[str]) -> list[str]:
    """Returns new keys that are not being deleted, and keys that are missing now."""
    if keys(cluster) == before:
        return []
    ending = set(_ending(cluster))
    now = keys(cluster)  # keys deleted until now were not listed as ending
    without_providers = _nobodys.setdefault(cluster.etcd, set())
    # The name of an object's namespace, or its kind, stands before its own.
    without_providers |= {
        key for key in now - before if ending & {key.removeprefix(CRD), key.split("/")[-2]}
    }
    made, taken = now - before - without_providers, before - now - without_providers
    return sorted([*(f"left {key}" for key in made), *(f"took {key}" for key in taken)])


def _ending(cluster: Cluster) -> Iterable[str]:
    """Names of namespaces and CRDs that are being deleted, and plurals of the latter."""
    for path in ("/api/v1/namespaces", CRDS):
        for item in cluster.api.request("GET", path, accept=NAMES_ALONE)["items"] or ():
            if "deletionTimestamp" in item["metadata"]:
                yield item["metadata"]["name"]
                yield item["metadata"]["name"].partition(".")[0]


def _compared(node: pytest.Item | pytest.Collector, others: Iterable[Cluster]) -> Iterator[None]:
    """``others`` are control planes that others use, too."""
    shared = [(cluster, keys(cluster)) for cluster in others if cluster.process is not None]
    yield
    found = [
        line
        for cluster, before in shared
        if cluster.process is not None
        for line in left_over(cluster, before)
    ]
    if found and node.get_closest_marker("leaves") is None:
        pytest.fail(f"{node.nodeid} in a control plane of others:\n" + "\n".join(found))


@pytest.fixture(scope="module", autouse=True)
def no_leftovers_of_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Asserts that objects of the module's fixtures are deleted with the module."""
    _BEFORE[:] = RUNNING
    yield from _compared(request.node, _BEFORE)


@pytest.fixture(autouse=True)
def no_leftovers(request: pytest.FixtureRequest, no_leftovers_of_module: None) -> Iterator[None]:
    """Asserts that a test's objects are deleted with it: each test's first fixture."""
    if not RUNNING:  # nearly always: a look at all tests for each of them takes minutes
        yield
        return
    node = request.node
    # The only test of a module shares the module's control planes with nobody.
    is_alone = sum(item.path == node.path for item in node.session.items) == 1
    yield from _compared(node, _BEFORE if is_alone else RUNNING)


_BEFORE: list[Cluster] = []
"""Control planes that ran before the module of the running test."""


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object],
) -> Generator[None, object, object]:
    """Excludes objects of session fixtures from the leftovers."""
    shared = [(cluster, keys(cluster)) for cluster in RUNNING if fixturedef.scope == "session"]
    result = yield
    for cluster, before in shared:
        _nobodys.setdefault(cluster.etcd, set()).update(keys(cluster) - before)
    return result
