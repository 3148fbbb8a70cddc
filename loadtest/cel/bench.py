"""Waddle's CEL beside Kubernetes' validator, template by template, and beside Rego.

`python -m loadtest.cel.bench LIBRARY` evaluates each template of a library that has code in CEL on
an object that it allows and on one that it denies: ours, and k8s.io/apiserver's validator (compiled
once, objects decoded, as Gatekeeper's driver has it) in alternated rounds on one core. A case counts
only where both decide the same. Then come typical expressions beside cel-go alone (no limits, no
composition: what nobody runs, and the least that it takes), then it compiles every expression, and reviews one Pod by twelve
constraints whose templates have both languages, once by each. With ``--policies`` it evaluates
ValidatingAdmissionPolicies beside the same validator, and with ``--kyverno`` the policies of
Kyverno's tests beside Kyverno's engine, in CPU: each alone, and all at once. Ratios below 1 mean that ours, or CEL,
needs less time.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadtest.cel.admission_policies import time_policies
from loadtest.cel.expressions import EXPRESSIONS, POD
from loadtest.cel.kyverno_policies import Timed, time_kyverno
from loadtest.rego.cases import load_cases
from tests.programs import build
from webhook.cel.engine import compile_expression
from webhook.cel.kubernetes import admission
from webhook.cel.run.meter import Meter
from webhook.cli.clients import new_client
from webhook.constraint.drivers.cel_evaluation import CelEvaluator
from webhook.constraint.drivers.cel_source import read_source
from webhook.constraint.enforcement import WEBHOOK
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.review import AugmentedObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadtest.rego.cases import Case, Json

ENGINE: Final = "K8sNativeValidation"
ROUND_SECONDS: Final = 0.05
RESULTS: Final = Path(__file__).parent.parent / "results"
CONSTRAINTS: Final = 12


def cel_of(template: Json) -> Json | None:
    """A template's source in CEL; None where it has none."""
    (target,) = template["spec"]["targets"]
    found = [one["source"] for one in target.get("code", ()) if one["engine"] == ENGINE]
    return found[0] if found else None


def policy_of(source: Json) -> Json:
    """Returns the policy for the oracle, as Gatekeeper's driver makes it from a source."""
    variables = [
        {"name": "anyObject", "expression": "object == null ? oldObject : object"},
        {
            "name": "params",
            "expression": "!has(params.spec) ? null : "
            "!has(params.spec.parameters) ? null : params.spec.parameters",
        },
        *source.get("variables", ()),
    ]
    return {"variables": variables, "validations": source["validations"]}


class Oracle:
    """The Go program that times Kubernetes' validator."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [build("cel-oracle")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"GOMAXPROCS": "1"},
        )

    def ask(self, question: Json) -> Json:
        """The answer to a question."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        answer: Json = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the program."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=10)


def review_of(case: Case) -> Json:
    """The case's request, whole: Kubernetes wants its resource."""
    kind = case.review["kind"]
    resource = {
        "group": kind["group"],
        "version": kind["version"],
        "resource": f"{kind['kind'].lower()}s",
    }
    return {"resource": resource, "options": None, **case.review}


def ours(case: Case, evaluator: CelEvaluator) -> Callable[[], tuple[float, list[str]]]:
    """Microseconds of an evaluation in a round, and the messages found."""
    review, parameters = review_of(case), case.input["parameters"]

    def run() -> tuple[float, list[str]]:
        count, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < ROUND_SECONDS:
            for _ in range(20):
                state = evaluator.begin(UNLIMITED, {})
                # Another review each time: what is known of the last one is of no use.
                found = list(evaluator.evaluate(parameters, {**review}, state))
            count += 20
        return elapsed / count * 1e6, [one.msg for one in found]

    return run


def theirs(oracle: Oracle, case: Case, source: Json) -> Callable[[], tuple[float, list[str]]]:
    """The same of Kubernetes' validator."""
    question = {
        "policy": policy_of(source),
        "request": review_of(case),
        "params": case.constraint,
        "budget": 1_000_000,
        "bench": ROUND_SECONDS,
    }

    def run() -> tuple[float, list[str]]:
        answer = oracle.ask(question)
        if answer.get("error"):
            raise RuntimeError(f"{case.name}: {answer['error']}")
        denied = [one["message"] for one in answer.get("decisions", ()) if one["action"] == "deny"]
        return answer["eval_us"], denied

    return run


def time_case(oracle: Oracle, case: Case, source: Json, rounds: int) -> dict[str, Any]:
    """Alternate both over one case; raises ValueError where they disagree."""
    engines = {
        "waddle": ours(case, CelEvaluator(read_source(source))),
        "kubernetes": theirs(oracle, case, source),
    }
    found = {name: run()[1] for name, run in engines.items()}  # and warm
    if found["waddle"] != found["kubernetes"]:
        raise ValueError(f"{case.name}: messages differ: {found}")
    times: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, run in engines.items():
            times[name].append(run()[0])
    medians = {f"{name}_us": statistics.median(of) for name, of in times.items()}
    ratio = medians["waddle_us"] / medians["kubernetes_us"]
    return {"name": case.name, "violations": len(found["waddle"]), **medians, "ratio": ratio}


def time_expression(oracle: Oracle, text: str, rounds: int) -> dict[str, Any]:
    """Measures an expression beside cel-go alone; raises ValueError if they disagree."""
    given = {"oldObject": None, "request": None, "namespaceObject": None, "params": None}
    variables = {**given, "object": POD}
    expression = compile_expression(text, admission({}, params=True))
    question = {"expr": text, "vars": variables, "bare": True}
    theirs = oracle.ask({**question, "bench": ROUND_SECONDS})
    if expression.evaluate(variables, Meter()) != _value(theirs):
        raise ValueError(f"{text}: values differ: {theirs}")
    times: dict[str, list[float]] = {"waddle_us": [], "bare_us": []}
    meter = Meter(10**15)  # as a constraint has one for all its expressions
    for _ in range(rounds):
        count, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < ROUND_SECONDS:
            for _ in range(50):
                expression.evaluate(variables, meter)
            count += 50
        times["waddle_us"].append(elapsed / count * 1e6)
        times["bare_us"].append(oracle.ask({**question, "bench": ROUND_SECONDS})["eval_us"])
    medians = {name: statistics.median(of) for name, of in times.items()}
    ratio = medians["waddle_us"] / medians["bare_us"]
    return {"expression": text, **medians, "ratio": ratio}


def _value(answer: Json) -> Any:
    """The bool, number or text that the oracle answers."""
    (kind,) = answer["value"]
    value = answer["value"][kind]
    return int(value) if kind == "int64Value" else value


def compile_times(sources: dict[str, Json], rounds: int) -> dict[str, Any]:
    """Milliseconds of CPU of an expression (the dearest template's mean), and of a whole template."""
    whole, each = {}, {}
    for name, source in sources.items():
        times = []
        for _ in range(rounds):
            started = time.process_time()
            CelEvaluator(read_source(source))
            times.append((time.process_time() - started) * 1e3)
        expressions = len(source.get("variables", ())) + sum(
            1 + bool(one.get("messageExpression")) for one in source["validations"]
        )
        whole[name] = statistics.median(times)
        each[name] = whole[name] / expressions
    dearest = max(whole, key=whole.__getitem__)
    return {
        "template_ms_max": whole[dearest],
        "template_max": dearest,
        "template_ms_median": statistics.median(whole.values()),
        "expression_ms_max": max(each.values()),
        "expression_ms_median": statistics.median(each.values()),
    }


def request_times(cases: Sequence[Case], rounds: int) -> dict[str, float]:
    """CPU microseconds of a review by twelve constraints, by CEL and by Rego, alternated."""
    pod = next(case.review["object"] for case in cases if case.review["kind"]["kind"] == "Pod")
    chosen = [case for case in cases if case.review["kind"]["kind"] == "Pod"]
    snapshots = {}
    for language, native in (("cel", True), ("rego", False)):
        client = new_client(native_validation=native)
        for number in range(CONSTRAINTS):
            case = chosen[number % len(chosen)]
            client.add_template(case.template)
            metadata = {**case.constraint["metadata"], "name": f"twelve-{number}"}
            client.add_constraint({**case.constraint, "metadata": metadata})
        snapshots[language] = client.snapshot
    times: dict[str, list[float]] = {name: [] for name in snapshots}
    for turn in range(rounds + 1):
        for name, snapshot in snapshots.items():
            count, started = 0, time.process_time()
            while (elapsed := time.process_time() - started) < ROUND_SECONDS * 4:
                for _ in range(20):
                    snapshot.review(AugmentedObject(pod), enforcement_point=WEBHOOK)
                count += 20
            if turn:  # the first warms
                times[name].append(elapsed / count * 1e6)
    return {f"{name}_us": statistics.median(of) for name, of in times.items()}


def report(timings: list[dict[str, Any]], figures: dict[str, Any]) -> str:
    """A line for each case, then the figures that the goals speak of."""
    lines = [f"{'case':56} {'n':>3} {'waddle µs':>10} {'validator µs':>13} {'ratio':>7}"]
    lines += [
        f"{one['name']:56} {one['violations']:3} {one['waddle_us']:10.1f} "
        f"{one['kubernetes_us']:13.1f} {one['ratio']:7.4f}"
        for one in timings
    ]
    if policies := figures.get("policies"):
        lines += ["", f"{'policy':56} {'n':>3} {'waddle µs':>10} {'validator µs':>13} {'ratio':>7}"]
        lines += [
            f"{one['name']:56} {one['violations']:3} {one['waddle_us']:10.1f} "
            f"{one['kubernetes_us']:13.1f} {one['ratio']:7.4f}"
            for one in policies
        ]
    if kyverno := figures.get("kyverno"):
        lines += [
            "",
            f"{'policy of Kyverno, CPU':56} {'n':>3} {'waddle µs':>10} {'Kyverno µs':>13} {'ratio':>7}",
        ]
        lines += [
            f"{one['name'][:56]:56} {one['violations']:3} {one['waddle_us']:10.1f} "
            f"{one['kyverno_us']:13.1f} {one['ratio']:7.4f}"
            for one in kyverno
        ]
        read = statistics.median(one["reading_us"] for one in kyverno)
        lines.append(f"of Waddle's, reading the request takes {read:.1f} µs")
    if all_ := figures.get("kyverno_together"):
        lines.append(
            f"all {all_['policies']}, {all_['matching']:.1f} about each of {all_['objects']} objects: "
            f"Waddle {all_['waddle_us']:.1f} µs, Kyverno {all_['kyverno_us']:.1f} µs, "
            f"ratio {all_['ratio']:.4f}"
        )
    lines += ["", f"{'expression':72} {'waddle':>8} {'cel-go':>8} {'ratio':>7}"]
    lines += [
        f"{one['expression'][:72]:72} {one['waddle_us']:8.2f} {one['bare_us']:8.2f} "
        f"{one['ratio']:7.3f}"
        for one in figures["expressions"]
    ]
    return "\n".join(lines)


def _mean(ratios: Sequence[float]) -> float:
    return statistics.geometric_mean(ratios) if ratios else 0.0


def _goals_of_kyverno(figures: dict[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Yields the goals of Kyverno's policies: all of them as an admission has them, and each alone."""
    if together := figures.get("kyverno_together"):
        title = (
            f"Kyverno's engine, {together['policies']} policies at once "
            f"({together['matching']:.0f} of them about an object), CPU"
        )
        yield title, together["ratio"], 0.1
    if alone := figures.get("kyverno"):
        title = "Kyverno's engine, each policy alone, CPU, geometric mean"
        yield title, _mean([one["ratio"] for one in alone]), 0.1


def goals(figures: dict[str, Any]) -> list[tuple[str, float, float]]:
    """Returns the goals of the engine: title, figure and maximum."""
    compiled = figures["compile"]
    ratios = [one["ratio"] for one in figures.get("policies", ())]
    # The API server evaluates these itself: here they are to take no longer than there.
    policies = ("ValidatingAdmissionPolicies beside it, geometric mean", _mean(ratios), 1.0)
    return [
        *((policies,) if ratios else ()),
        *_goals_of_kyverno(figures),
        (
            "a template beside Kubernetes' validator, geometric mean",
            figures["geometric_mean"],
            0.06,
        ),
        (f"the worst of them ({figures['worst_case']})", figures["worst"], 0.12),
        ("expressions beside cel-go alone, geometric mean", figures["bare_geometric_mean"], 1.0),
        (
            "ms to compile an expression (dearest template's mean)",
            compiled["expression_ms_max"],
            3.0,
        ),
        (
            f"ms to compile the largest template ({compiled['template_max']})",
            compiled["template_ms_max"],
            60.0,
        ),
        (
            f"a review by {CONSTRAINTS} constraints: CEL beside Rego",
            figures["twelve_constraints"]["ratio"],
            1.0,
        ),
    ]


def summary(figures: dict[str, Any]) -> str:
    """The goals as a table."""
    rows = ["| what | figure | at most |", "|---|---|---|"]
    rows += [f"| {title} | {found:.3f} | {most:g} |" for title, found, most in goals(figures)]
    return "\n".join(rows)


def save(document: dict[str, Any], table: str) -> None:
    """Write ``cel.json`` and ``cel.md``."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "cel.json").write_text(json.dumps(document, indent=1) + "\n")
    (RESULTS / "cel.md").write_text(
        "# CEL beside Kubernetes' validator, cel-go and Rego\n\n"
        f"`{document['command']}`: {document['machine']}, Python {document['python']}; one core for "
        "both, in turns. Ratios below 1 mean that Waddle, or CEL beside Rego, takes less.\n\n"
        f"{summary(document['figures'])}\n\n"
        f"Microseconds, each case by itself (n: violations):\n\n```\n{table}\n```\n"
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path)
    parser.add_argument(
        "--policies", type=Path, help="a folder of ValidatingAdmissionPolicies with cases"
    )
    parser.add_argument("--kyverno", type=Path, help="a folder of policies with kyverno-test.yaml")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--filter", default="")
    parser.add_argument(
        "--save", action="store_true", help=f"write {RESULTS.name}/cel.json and cel.md"
    )
    arguments = parser.parse_args()
    gc.set_threshold(1_000, 5, 4_000)  # as `waddle serve` has it
    os.environ["WADDLE_CACHE"] = ""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core for both
    cases = [
        case
        for case in load_cases(arguments.library)
        if cel_of(case.template) and arguments.filter in case.name
    ]
    if not cases:
        sys.exit(f"no templates in CEL in {arguments.library}")
    oracle = Oracle()
    try:
        timings = [
            time_case(oracle, case, cel_of(case.template) or {}, arguments.rounds) for case in cases
        ]
        policies, different = (
            time_policies(oracle.ask, arguments.policies, arguments.rounds)
            if arguments.policies
            else ([], [])
        )
        expressions = [time_expression(oracle, text, arguments.rounds) for text in EXPRESSIONS]
    finally:
        oracle.close()
    kyverno = (
        time_kyverno(arguments.kyverno, arguments.rounds)
        if arguments.kyverno
        else Timed([], None, [])
    )
    different += kyverno.left_out
    once = {case.name.split()[0]: case for case in cases}
    sources = {name: cel_of(case.template) or {} for name, case in once.items()}
    worst = max(timings, key=lambda one: one["ratio"])
    twelve = request_times(list(once.values()), arguments.rounds)
    figures = {
        "geometric_mean": statistics.geometric_mean([one["ratio"] for one in timings]),
        "worst": worst["ratio"],
        "policies": policies,
        "kyverno": kyverno.alone,
        "kyverno_together": kyverno.together,
        "worst_case": worst["name"],
        "expressions": expressions,
        "bare_geometric_mean": statistics.geometric_mean([one["ratio"] for one in expressions]),
        "compile": compile_times(sources, arguments.rounds),
        "twelve_constraints": {**twelve, "ratio": twelve["cel_us"] / twelve["rego_us"]},
    }
    for text in different:
        print(f"not timed: {text}", file=sys.stderr)
    table = report(timings, figures)
    print(f"{table}\n\n{summary(figures)}")
    if arguments.save:
        document = {
            "command": "make bench-cel",
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "python": platform.python_version(),
            "figures": figures,
            "cases": timings,
        }
        save(document, table)


if __name__ == "__main__":
    main()
