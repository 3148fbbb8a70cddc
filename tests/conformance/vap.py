"""Reviews public cases by their policies: ``python -m tests.conformance.vap DIR``.

A folder holds ``cases.json`` and ``policies``: each case names a policy's file, and has a binding,
parameters, objects and what is right: the last object is admitted (``pass``) or refused (``fail``).
Each verdict is compared with the wrong one, too, by being told in numbers of both kinds.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from webhook.admission_policies.kinds import ConfigurationFault
from webhook.admission_policies.parameters import parameters_of
from webhook.admission_policies.reading import AdmissionPolicy, read_binding, read_policy
from webhook.admission_policies.verdict import (
    PolicyVerdict,
    evaluate_exact,
    evaluate_fast,
    misconfigured,
)
from webhook.constraint.placement import namespace_for
from webhook.review.subject import played

Json = dict[str, Any]

EXCUSED: dict[str, str] = {}
"""Cases that are answered in another way, by policy and name, each with the reason."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A case with what was said of it."""

    name: str
    expected: str
    given: str
    why: str

    @property
    def is_right(self) -> bool:
        """Whether it is what was expected."""
        return self.expected == self.given


@cache
def policy_document(file: Path) -> Json:
    """Returns the policy of a file."""
    documents = [one for one in yaml.safe_load_all(file.read_text()) if one]
    (policy,) = [one for one in documents if one["kind"] == "ValidatingAdmissionPolicy"]
    return dict(policy)


@cache
def _policy(file: Path) -> AdmissionPolicy:
    return read_policy(policy_document(file))


def answers(folder: Path) -> Iterator[Answer]:
    """Yields the answer to each case."""
    for case in json.loads((folder / "cases.json").read_text()):
        messages = messages_of(folder / "policies" / case["policy"], case)
        name = f"{case['policy']}: {case['name']}"
        yield Answer(name, case["expected"], "fail" if messages else "pass", "; ".join(messages))


def messages_of(file: Path, case: Json) -> list[str]:
    """Returns our denials of the last object of a case, which earlier ones were updated to."""
    policy, binding = _policy(file), read_binding(case["binding"])
    params = case.get("params") or []
    known = params if isinstance(params, list) else [params]
    obj = case["objects"][-1]
    old = case["objects"][-2] if case["objects"][1:] else None
    if not obj["kind"].startswith("Cluster"):
        obj = {**obj, "metadata": {"namespace": "default", **obj["metadata"]}}
    name = obj["metadata"].get("namespace", "")
    labels = {"kubernetes.io/metadata.name": name}
    namespace = dict(
        namespace_for(obj, {name: {"metadata": {"name": name, "labels": labels}}}) or {}
    )
    request = played(obj, namespace, "CREATE" if old is None else "UPDATE", old).request.document
    if not (policy.matches(request, namespace) and binding.matches(request, namespace)):
        return []
    try:
        given = parameters_of(policy, binding, request, lambda _: known)
    except ConfigurationFault as fault:
        verdicts = [misconfigured(policy, str(fault))]
    else:
        verdicts = [_verdict(policy, request, namespace, one) for one in given]
    messages = [one.message for verdict in verdicts for one in verdict.failures]
    return messages + [text for verdict in verdicts for text in verdict.undecided]


def _verdict(policy: AdmissionPolicy, request: Json, namespace: Json, param: Any) -> PolicyVerdict:
    """The exact verdict, of which the fast one must be no other."""
    exact = evaluate_exact(policy, request, namespace, param)
    fast = evaluate_fast(policy, request, namespace, param)
    assert fast in (None, exact), policy.name
    return exact


def main(folder: Path) -> int:
    """Tell of all cases; 1 where one that is not excused is answered in another way."""
    numbers: Counter[str] = Counter()
    for answer in answers(folder):
        if answer.is_right:
            numbers[answer.given] += 1
        elif answer.name in EXCUSED:
            numbers["excused"] += 1
        else:
            numbers["wrong"] += 1
            print(f"{answer.name}: {answer.given}, not {answer.expected}: {answer.why}")
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(numbers.items())))
    return 1 if numbers["wrong"] or not numbers else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
