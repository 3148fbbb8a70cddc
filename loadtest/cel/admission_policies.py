"""ValidatingAdmissionPolicies as people write them, ours beside Kubernetes' own validator.

A folder has ``cases.json`` and ``policies`` as `python -m tests.conformance.vap` reads them. Of each
policy one case is taken that it admits and one that it refuses: variables, validations and messages
are evaluated by both, matching by neither.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import TYPE_CHECKING, Any, Final

import yaml

from webhook.admission_policies.reading import read_policy
from webhook.admission_policies.verdict import evaluate
from webhook.constraint.placement import namespace_for
from webhook.review.subject import played

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from loadtest.rego.cases import Json

ROUND_SECONDS: Final = 0.05
COST: Final = 10_000_000
"""The API server's limit of one policy's cost."""


def chosen(folder: Path) -> Iterator[Json]:
    """Yields a case of each policy and verdict, with one object and at most one parameter."""
    seen = set()
    for case in json.loads((folder / "cases.json").read_text()):
        key = case["policy"], case["expected"]
        params = case.get("params") or []
        if key in seen or len(case["objects"]) != 1 or (isinstance(params, list) and params[1:]):
            continue
        seen.add(key)
        yield case


def time_policies(
    ask: Callable[[Json], Json], folder: Path, rounds: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """Measures both over each case, alternated; returns the cases in which they differ, too."""
    timings, different = [], []
    for case in chosen(folder):
        documents = yaml.safe_load_all((folder / "policies" / case["policy"]).read_text())
        (document,) = [
            one for one in documents if one and one["kind"] == "ValidatingAdmissionPolicy"
        ]
        name = f"{case['policy']} {case['expected']}"
        engines = _engines(ask, case, document)
        found = {engine: run()[1] for engine, run in engines.items()}  # and warm
        if found["waddle"] != found["kubernetes"]:
            different.append(f"{name}: {found}")
            continue
        times: dict[str, list[float]] = {engine: [] for engine in engines}
        for _ in range(rounds):
            for engine, run in engines.items():
                times[engine].append(run()[0])
        medians = {f"{engine}_us": statistics.median(of) for engine, of in times.items()}
        ratio = medians["waddle_us"] / medians["kubernetes_us"]
        timings.append({"name": name, "violations": found["waddle"], **medians, "ratio": ratio})
    return timings, different


def _engines(
    ask: Callable[[Json], Json], case: Json, document: Json
) -> dict[str, Callable[[], tuple[float, int]]]:
    """Each gives the microseconds of an evaluation, and how many validations refuse."""
    (obj,) = case["objects"]
    obj.setdefault("metadata", {}).setdefault("namespace", "default")
    namespace = dict(namespace_for(obj, {}) or {})
    request = played(obj, namespace, "CREATE", None).request.document
    params = case.get("params") or None
    parameter = params[0] if isinstance(params, list) else params
    policy, spec = read_policy(document), document["spec"]
    question = {
        "policy": {name: spec[name] for name in ("variables", "validations") if name in spec},
        "request": request,
        "params": parameter,
        "budget": COST,
        "bench": ROUND_SECONDS,
    }

    def ours() -> tuple[float, int]:
        count, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < ROUND_SECONDS:
            for _ in range(20):
                verdict = evaluate(policy, {**request}, namespace, parameter)
            count += 20
        return elapsed / count * 1e6, len(verdict.failures)

    def theirs() -> tuple[float, int]:
        answer = ask(question)
        if answer.get("error"):
            raise RuntimeError(f"{case['name']}: {answer['error']}")
        denied = [one for one in answer.get("decisions", ()) if one["action"] == "deny"]
        return answer["eval_us"], len(denied)

    return {"waddle": ours, "kubernetes": theirs}
