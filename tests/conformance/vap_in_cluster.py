"""The cases of `tests.conformance.vap` at a real API server, beside our verdicts.

``python -m tests.conformance.vap_in_cluster DIR`` starts an API server, creates the policies,
bindings and parameters of a folder there, and posts the last object of each case as a dry run.

All policies are there at once. Each binding selects objects by the value of a label, so it gets a
value of its own, which the posted object has too.
"""

import contextlib
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path

from tests.cluster import Api, ApiError, Cluster, serves
from tests.conformance.vap import EXCUSED, Json, messages_of, policy_document
from tests.patience import PATIENCE_SECONDS, until
from tests.policies import definition
from tests.programs import build

LABEL = "admission-policy-test"
GROUP = "/apis/admissionregistration.k8s.io/v1"
CRD = definition("ControlConfiguration", "controlconfigurations", "kubescape.io")
"""The kind of the parameters, with a schema that takes everything."""

_SET_BY_SERVER = ("uid", "creationTimestamp", "managedFields", "resourceVersion", "generation")


_DENIED = re.compile(r"^.*?denied request: ", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The API server's verdict of a case, and ours.

    ``message`` is its denial, empty where it admits. ``ours`` are our denials of the object with
    its defaults, ``written`` those of the object as it is written. ``refusal`` is an error of the
    API server that no policy gave; there are no verdicts then.
    """

    name: str
    expected: str
    message: str = ""
    ours: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def is_different(self) -> bool:
        """Whether there is a difference that is not excused."""
        return bool(self.difference) and self.name not in EXCUSED

    @property
    def difference(self) -> str:
        """How the API server's verdict differs from ours or the recorded one; empty for not."""
        if self.refusal:
            return f"the API server refuses the object: {self.refusal}"
        if self.message != "".join(self.ours[:1]):
            return f"the API server: {self.message or 'admitted'}; we: {self.ours or 'admitted'}"
        if bool(self.message) != (self.expected == "fail"):
            return f"the API server: {self.message or 'admitted'}; recorded: {self.expected}"
        if self.written != self.ours:
            return f"we say of the object as written: {self.written}, with defaults: {self.ours}"
        return ""


def install(api: Api, folder: Path, cases: list[Json]) -> list[str]:
    """Create policies, bindings and parameters; returns the value of the label for each case."""
    _create(api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    until(lambda: serves(api, CRD), "the kind of the parameters is served")
    _create(api, "/api/v1/namespaces", {"metadata": {"name": "test-namespace"}})
    values: dict[str, str] = {}
    found = []
    for case in cases:
        key = json.dumps([case["policy"], case["binding"], case["params"]], sort_keys=True)
        if key not in values:
            values[key] = f"case-{len(values)}"
            for path, document in _documents(folder, case, values[key]):
                _create(api, path, document)
        found.append(values[key])
    return found


def _documents(folder: Path, case: Json, value: str) -> Iterator[tuple[str, Json]]:
    """Yields the parameters, the policy and the binding of a case, for objects with that label."""
    metadata = {"name": value}
    params = {**case["params"], "metadata": metadata}
    spec = case["binding"]["spec"]
    assert spec["matchResources"] == {"objectSelector": {"matchLabels": {LABEL: "abc"}}}
    selector = {"objectSelector": {"matchLabels": {LABEL: value}}}
    bound = {**spec, "matchResources": selector}
    policy = policy_document(folder / "policies" / case["policy"])
    if "paramKind" in policy["spec"]:
        bound["paramRef"] = {**spec["paramRef"], "name": value}
    else:
        del bound["paramRef"]
    yield "/apis/kubescape.io/v1/controlconfigurations", params
    yield f"{GROUP}/validatingadmissionpolicies", policy
    binding = {**case["binding"], "metadata": metadata, "spec": bound}
    yield f"{GROUP}/validatingadmissionpolicybindings", binding


def _create(api: Api, path: str, document: Json) -> None:
    """Create an object; one that is there already stays."""
    try:
        api.request("POST", path, document)
    except ApiError as error:
        if error.status != HTTPStatus.CONFLICT:
            raise


def verdict(api: Api, folder: Path, case: Json, value: str) -> Verdict:
    """Ask the API server, and ourselves, about the last object of a case."""
    obj = case["objects"][-1]
    name = f"{case['policy']}: {case['name']}"
    method, path, objects = "POST", _path(api, obj), []
    try:
        # The default ServiceAccount of a namespace is always there: it is updated.
        with contextlib.suppress(ApiError):
            stored = f"{path}/{obj['metadata']['name']}"
            objects.append(api.request("GET", stored))
            method, path = "PUT", stored
        objects.append(api.request(method, f"{path}?dryRun=All", _labelled(obj, "none")))
    except ApiError as error:
        return Verdict(name, case["expected"], refusal=_message(error))
    objects[-1] = _labelled(objects[-1], "abc")
    for field in _SET_BY_SERVER:
        objects[-1]["metadata"].pop(field, None)
    message = ""
    try:
        api.request(method, f"{path}?dryRun=All", _labelled(obj, value))
    except ApiError as error:
        message = _DENIED.sub("", _message(error))
    policy = folder / "policies" / case["policy"]
    return Verdict(
        name,
        case["expected"],
        message,
        tuple(messages_of(policy, {**case, "objects": objects})),
        tuple(messages_of(policy, case)),
    )


def _message(error: ApiError) -> str:
    return str(json.loads(error.body)["message"])


def _labelled(obj: Json, value: str) -> Json:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**metadata["labels"], LABEL: value}}}


def _path(api: Api, obj: Json) -> str:
    """Where the API server creates such an object."""
    root = f"/{'apis' if '/' in obj['apiVersion'] else 'api'}/{obj['apiVersion']}"
    (kind,) = [
        one for one in _served(api, root) if one["kind"] == obj["kind"] and "/" not in one["name"]
    ]
    space = f"/namespaces/{obj['metadata'].get('namespace', 'default')}"
    return f"{root}{space if kind['namespaced'] else ''}/{kind['name']}"


@cache
def _served(api: Api, root: str) -> list[Json]:
    resources: list[Json] = api.request("GET", root)["resources"]
    return resources


def verdicts(api: Api, folder: Path) -> Iterator[Verdict]:
    """Yields the verdicts of each case, once the API server goes by its policy."""
    cases: list[Json] = json.loads((folder / "cases.json").read_text())
    # What is refused first shows that its policy is in force for what is admitted after it.
    cases.sort(key=lambda case: str(case["expected"]))
    values = install(api, folder, cases)
    end = time.monotonic() + PATIENCE_SECONDS
    for case, value in zip(cases, values, strict=True):
        while (found := verdict(api, folder, case, value)).is_different and time.monotonic() < end:
            time.sleep(0.1)
        yield found


def main(folder: Path) -> int:
    """Tell the differences; 1 where there are any, or no cases."""
    with tempfile.TemporaryDirectory() as place:
        cluster = Cluster.start(build("testcluster"), Path(place))
        try:
            found = list(verdicts(cluster.api, folder))
        finally:
            cluster.stop()
    different = [one for one in found if one.is_different]
    for one in different:
        print(f"{one.name}: {one.difference}")
    print(f"{len(found)} cases, {len(different)} differences")
    return 1 if different or not found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
