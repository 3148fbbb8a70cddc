"""Runs mutation cases: ``python -m tests.conformance.mutation FILE...``; ends ``N passed, M failed``.

The format is told in the file itself. Where Waddle differs on purpose the case is named in
``DIFFERENCES``, with the row of docs/compatibility/mutation.md, and is judged by what is written here.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.json_patch import apply_patch
from webhook.api.encoding import is_same_json
from webhook.external_data.cache import answered_items, corrected_keys
from webhook.external_data.exchange import (
    UNKNOWN_PROVIDER,
    Answering,
    ProviderRequest,
    ProviderResponse,
    failure,
)
from webhook.external_data.response import AnsweredKey
from webhook.mutation.annotations import annotated
from webhook.mutation.errors import InvalidMutator, MutationError
from webhook.mutation.external import settled, unanswered_keys
from webhook.mutation.location import Field, Location, canonical, parse
from webhook.mutation.mutator import MutatorId
from webhook.mutation.patch import make_patch
from webhook.mutation.registry import Mutators
from webhook.mutation.schema import message
from webhook.mutation.setting import Context

ZERO_ID = "00000000-0000-0000-0000-000000000000"

DIFFERENCES: dict[str, dict[str, Any]] = {
    # "Exact integers": one kind of number, and an item with an integer key can be assigned.
    "Assign: item with an integer key": {"load": [None]},
    "quirk: an assigned integer is not found by an integer key": {
        "spec": {"ports": [{"containerPort": 8888, "name": "n"}]}
    },
    "quirk: assigned integers pass through float64": {"spec": {"n": 9007199254740993}},
    # "Labels that are null": as if there were none.
    "quirk: labels null": {"metadata": {"name": "my-foo", "labels": {"a": "b"}}},
}


class Disagreement(Exception):
    """A case whose result differs from the expected one."""


def _check(expected: object, got: object, subject: str) -> None:
    if not is_same_json(expected, got):
        raise Disagreement(f"{subject}: expected {json.dumps(expected)}, got {json.dumps(got)}")


def _check_text(expected: str, got: str, subject: str) -> None:
    if expected not in got or not got:
        raise Disagreement(f"{subject}: expected an error with {expected!r}, got {got!r}")


def run_path(case: dict[str, Any]) -> None:
    """Parse a location; raises :class:`Disagreement`."""
    try:
        found = parse(case["input"])
    except InvalidMutator as error:
        _check_text(case.get("errorContains", "no error"), str(error), "error")
        return
    if "errorContains" in case:
        raise Disagreement(f"expected an error with {case['errorContains']!r}, and parses")
    _check(case["nodes"], nodes_of(found), "nodes")
    if "canonical" in case:
        _check(case["canonical"], canonical(found), "canonical")


def nodes_of(location: Location) -> list[dict[str, Any]]:
    """A location's steps as the cases, and the oracle, write them."""
    nodes: list[dict[str, Any]] = []
    for node in location:
        if isinstance(node, Field):
            nodes.append({"field": node.name})
        elif node[1] is None:
            nodes.append({"key": node[0], "glob": True})
        else:
            nodes.append({"key": node[0], "value": node[1]})
    return nodes


def _load(case: dict[str, Any]) -> Mutators:
    mutators = Mutators()
    given: list[dict[str, str] | None] = []
    for document in case["mutators"]:
        try:
            mutator = mutators.add(document)
        except InvalidMutator as error:
            given.append({"errorContains": str(error)})
            continue
        conflicts = mutators.conflicts_of(mutator.id)
        conflict = {"type": "ErrConflictingSchema", "errorContains": message(conflicts)}
        given.append(conflict if conflicts else None)
    for number, expected in enumerate(case.get("load") or [None] * len(given)):
        got = given[number]
        if (expected is None) != (got is None):
            raise Disagreement(f"loading mutator {number}: expected {expected}, got {got}")
        if expected is not None and got is not None:
            _check_text(expected["errorContains"], got["errorContains"], f"mutator {number}")
            if "type" in expected:
                _check(expected["type"], got.get("type"), "type")
    for name in case.get("remove") or ():
        for kind in ("Assign", "AssignImage", "AssignMetadata", "ModifySet"):
            mutators.remove(MutatorId(kind, name))
    return mutators


def answers_of(providers: dict[str, Any]) -> Answering:
    """Answer as a case's providers do; those that are not named are not there."""

    def known(request: ProviderRequest) -> ProviderResponse:
        response = providers.get(request.provider)
        if response is None:
            return failure("key is not found in provider cache", UNKNOWN_PROVIDER)
        if response.get("sendError"):
            return failure(response["sendError"])
        items = [
            AnsweredKey(item.get("key", ""), item.get("value"), item.get("error") or "")
            for item in response.get("items") or ()
        ]
        return ProviderResponse(
            *answered_items(items),
            200,
            response.get("systemError") or "",
            bool(response.get("idempotent")),
            corrected=corrected_keys(items),
        )

    return known


def run_case(case: dict[str, Any]) -> None:
    """Load the mutators and mutate the object; raises :class:`Disagreement`."""
    mutators = _load(case)
    if "object" not in case:
        return
    obj, namespace = case["object"], case.get("namespace")
    own = (obj.get("metadata") or {}).get("namespace", "")
    lent = namespace["metadata"]["name"] if namespace else own
    if obj.get("kind") == "Namespace" and obj.get("apiVersion") == "v1":
        lent = own
    context = Context(
        operation=case.get("operation", ""),
        namespace=namespace,
        namespace_name=lent,
        username=case.get("username", ""),
        source=case.get("source", "Original"),
    )
    snapshot = mutators.snapshot
    before = json.dumps(obj)
    iterations, unanswered = 0, {}
    after = obj
    try:
        mutated = snapshot.mutate(obj, context)
        iterations, unanswered = mutated.iterations, unanswered_keys(mutated)
        after = settled(mutated, answers_of(case.get("providers") or {}))
        if case.get("annotations") and mutated.iterations:
            after = annotated(after, mutated.passes, ZERO_ID)
        error = ""
    except MutationError as fault:
        error, iterations = str(fault), fault.iterations
    _check(json.loads(before), obj, "the object that went in")
    if "errorContains" in case:
        _check_text(case["errorContains"], error, "error")
    elif error:
        raise Disagreement(f"expected no error, got {error!r}")
    else:
        _check(case["after"], after, "after")
        patch = make_patch(obj, after)
        _check(after, apply_patch(obj, patch), f"the patch {patch}")
        if iterations == 0 and is_same_json(case["after"], obj):
            return  # "A change is another JSON": Gatekeeper counts 1 for 1.0 as one.
        if "mutated" in case:
            _check(case["mutated"], iterations != 0, "mutated")
    if "iterations" in case:
        _check(case["iterations"], iterations, "iterations")
    if "asked" in case and not error:
        got = {name: sorted(keys) for name, keys in unanswered.items()}
        _check({name: sorted(keys) for name, keys in case["asked"].items()}, got, "asked")


def with_difference(case: dict[str, Any]) -> dict[str, Any]:
    """The case with the result that is Waddle's own, where it differs on purpose."""
    found = DIFFERENCES.get(case["name"])
    if found is None:
        return case
    if "load" in found:
        return {**case, **found}
    case = {name: value for name, value in case.items() if name != "errorContains"}
    return {**case, "iterations": 2, "mutated": True, "after": {**case["object"], **found}}


def run_file(path: Path) -> tuple[int, list[str]]:
    """Returns the number of passed cases of a file, and the failures of the others."""
    cases = json.loads(path.read_bytes())
    passed, failures = 0, list[str]()
    for run, found in ((run_path, cases["paths"]), (run_case, cases["cases"])):
        for case in found:
            try:
                run(with_difference(case))
            except Disagreement as error:
                failures.append(f"{case['name']}: {error}")
            else:
                passed += 1
    return passed, failures


def main(arguments: Iterable[str]) -> int:
    """Run the files; 1 if any case failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="+", type=Path)
    passed, failed = 0, 0
    for path in parser.parse_args(list(arguments)).files:
        count, failures = run_file(path)
        passed, failed = passed + count, failed + len(failures)
        for fault in failures:
            print(f"FAILED {fault}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
