"""The process that tries a console's user input: ``python -m webhook.console.playground_worker``.

Each job has its own process with limits on processor time and memory, like the trials of new
policies (:mod:`webhook.trials.worker`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.admission_policies.kinds import MUTATING_POLICY, POLICY
from webhook.admission_policies.parameters import ParameterStore, is_namespaced
from webhook.api.admission import InvalidReview
from webhook.api.documents import InvalidDocument, read_documents
from webhook.api.encoding import decode, encode
from webhook.api.gvk import GroupVersionKind, gvk_of, name_of, shown_name
from webhook.cel.errors import CompileError
from webhook.cel.errors import EvaluationError as CelError
from webhook.console.review import EXCUSED, review
from webhook.constraint import constraint, enforcement
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.group import is_group, templates_of
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.targets.known import TARGETS
from webhook.policies.expression import evaluate
from webhook.policies.extensions import Extensions, on_top
from webhook.policies.manifests import Manifest
from webhook.policies.problem import Problem
from webhook.policies.recorded_answers import InvalidAnswers, is_answers, typed_answers
from webhook.policies.replay import (
    decided_at,
    policies_of_record,
    recorded_ask,
    replayed_subject,
    subject_of,
)
from webhook.policies.samples import samples
from webhook.policies.validation import is_policy, validate
from webhook.policy_kinds.known import is_extension, is_foreign_policy
from webhook.rego.engine import UNDEFINED, EvaluationContext, compile_modules
from webhook.rego.errors import EvaluationError, RegoErrors
from webhook.rego.results import ResultQuery
from webhook.rego.run.text import to_json
from webhook.rego.syntax.parser import parse_module
from webhook.review.admission_policies import AdmissionPolicies
from webhook.review.admission_requests import known_of
from webhook.review.subject import Subject, is_admission_review, shown_object, value_of
from webhook.trials.trial import written
from webhook.trials.worker import serve

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from webhook.review.policy_set import PolicySet
    from webhook.trials.job import Job

_SOLUTIONS_MAX: Final = 100
_REVIEWS_MAX: Final = 50
_STEPS: Final = 200_000_000
_TYPED: Final = "the typed text"


class _Unfit(Exception):
    """The input is unusable; the text says why."""


def answer(job: Job) -> bytes:
    """Carries out a job; returns its results or an ``error`` as JSON, in the outcome of a trial."""
    try:
        answered = _ANSWERS[job["mode"]](job)
    except _Unfit as error:
        answered = {"error": str(error)}
    return written({"found": encode(answered)})


def _documents(text: str, noun: str) -> list[Any]:
    try:
        return [item.value for item in read_documents(text)]
    except InvalidDocument as error:
        raise _Unfit(f"{noun}: {error}") from None


def _one(text: str, noun: str) -> Any:
    documents = _documents(text, noun) if text.strip() else []
    if len(documents) > 1:
        raise _Unfit(f"{noun}: one document is expected, not {len(documents)}")
    return documents[0] if documents else None


def _policies(job: Job) -> dict[str, Any]:
    """Tries templates and constraints on the given objects, or on samples if there are none."""
    given, client, problems, extensions = _compiled(job)
    typed = [*given, *_documents(job["input"], "objects")]
    try:
        ask = typed_answers(typed)
    except InvalidAnswers as error:
        raise _Unfit(str(error)) from None
    objects = _objects(typed)
    are_samples = not objects
    if are_samples:
        objects = _samples(client)
    policies = _with_data(job, client, extensions, objects)
    snapshot = policies.snapshot
    reviews = []
    for item in objects[:_REVIEWS_MAX]:
        try:
            value = value_of(item, snapshot.namespaces)
        except InvalidReview as error:
            raise _Unfit(f"objects: AdmissionReview: {error}") from None
        subject = Subject(value, point=enforcement.COMMAND_LINE)
        rows, faults = review(policies, subject, seconds=job["seconds"], ask=ask)
        shown = shown_name(shown_object(item))
        reviews.append({"object": shown, "violations": rows, "notDecided": faults})
    return {
        "problems": problems,
        "reviews": reviews,
        "samples": are_samples,
        "notReviewed": max(0, len(objects) - _REVIEWS_MAX),
        "constraints": len(snapshot.constraints) + len(policies.foreign.keys),
    }


def _objects(typed: Iterable[Any]) -> list[dict[str, Any]]:
    """Returns the typed documents that are neither policies nor providers' answers."""
    return [
        item
        for item in typed
        if isinstance(item, dict)
        and not (is_policy(item) or is_extension(item) or is_answers(item))
    ]


def _with_data(
    job: Job, client: Client, extensions: Extensions, objects: Iterable[dict[str, Any]]
) -> PolicySet:
    """Returns the policies with known data and typed objects, which may be parameters."""
    for item in (*decode(job.get("known", b"[]")), *objects):
        if is_admission_review(item):
            continue
        try:
            client.add_data(item)
        except ConstraintFrameworkError:
            continue
    policies = extensions.policy_set(client.snapshot)
    unknown = {GroupVersionKind(*kind): why for *kind, why in job.get("unknown", ())}
    inventory = client.snapshot.inventory

    def find(kind: GroupVersionKind) -> list[dict[str, Any]]:
        return list(known_of(inventory, kind))

    for stage in policies.foreign.stages:
        if not isinstance(stage, AdmissionPolicies):
            continue
        store = ParameterStore()
        for kind in stage.kinds_of_parameters:
            given = find(kind)
            if kind in unknown and not given:
                store.lack(kind, unknown[kind])
            store.put(kind, given, namespaced=is_namespaced(kind, given, find))
        stage.with_parameters(store)
    return policies


def _compiled(job: Job) -> tuple[list[Any], Client, list[dict[str, Any]], Extensions]:
    """Reads the input, compiles its policies, and lists their problems.

    Includes the typed mutators and ExpansionTemplates, and those in force.
    """
    given = _documents(job["policy"], "policies")
    objects = [item for item in given if isinstance(item, dict)]
    policies = [item for item in objects if is_policy(item)]
    if not policies and not any(is_foreign_policy(gvk_of(item)) for item in objects):
        raise _Unfit("policies: neither a template nor a constraint is among them")
    client = Client(targets=TARGETS, drivers=[CelDriver(), RegoDriver()])
    kinds = {
        gvk_of(item).kind.lower() for item in policies if gvk_of(item).group == constraint.GROUP
    }.union(*(templates_of(item) for item in policies if is_group(item)))
    names = {name_of(item) for item in policies}
    in_force = [
        item
        for item in decode(job["inForce"])
        if name_of(item) in kinds and name_of(item) not in names
    ]
    problems = [
        problem.document() for problem in validate(client, [*in_force, *policies], job["seconds"])
    ]
    extensions = Extensions()
    typed = [Manifest(item, _TYPED) for item in given if isinstance(item, dict)]
    typed_extensions = [item for item in typed if is_extension(item.document)]
    beside = decode(job.get("extensions", b"[]"))
    if job["mode"] == "recorded":
        # Waddle's decisions do not contain the effect of policies that the API server enforces
        # itself.
        kinds_beside = {POLICY, MUTATING_POLICY}
        beside = [document for document in beside if gvk_of(document).kind not in kinds_beside]
    for fault in extensions.load(on_top(typed_extensions, beside)):
        if fault.file == _TYPED:
            kind, _, name = fault.title.partition(" ")
            problems.append(Problem(kind, name, "error", "invalid", fault.message).document())
    return given, client, problems, extensions


def _recorded(job: Job) -> dict[str, Any]:
    """Replays recorded decisions by the typed policies.

    Keeps the recorded results of other policies.
    """
    given, client, problems, extensions = _compiled(job)
    data = _objects([*given, *_documents(job["input"], "objects")])
    policies = _with_data(job, client, extensions, data)
    given_keys = {
        (gvk_of(document).kind, name_of(document))
        for document in given
        if isinstance(document, dict)
    }
    typed = {(constraint.kind, constraint.name) for constraint in policies.snapshot.constraints}
    typed |= given_keys.intersection(policies.foreign.keys)
    replayed, changes, undecided = 0, [], 0
    for record in decode(job["records"]):
        subject = subject_of(record)
        if subject is None or record.get("verdict") == "error":
            continue
        replayed += 1
        again = replayed_subject(subject, enforcement.WEBHOOK, UNLIMITED, decided_at(record))
        ask = recorded_ask(record)
        applicable = policies_of_record(record, policies)
        rows, faults = review(applicable, again, seconds=job["seconds"], ask=ask)
        rows = [row for row in rows if row["action"] != EXCUSED]
        undecided += bool(faults)
        others = {
            action
            for result in record.get("results") or ()
            if _constraint_of(result) not in typed
            for action in (result.get("enforcementActions") or [result.get("enforcementAction")])
        }
        after = _gravest(others | {action for row in rows for action in row["action"].split(",")})
        if rows or after != record.get("verdict"):
            changes.append(_change(record, after, rows))
    changed = [change for change in changes if change["before"] != change["after"]]
    return {
        "problems": problems,
        "replayed": replayed,
        "violating": len(changes),
        "changed": len(changed),
        "undecided": undecided,
        "rows": [*changed, *(change for change in changes if change["before"] == change["after"])][
            :_REVIEWS_MAX
        ],
        "constraints": len(typed),
    }


def _constraint_of(result: dict[str, Any]) -> tuple[Any, Any]:
    named = result.get("constraint") or {}
    return named.get("kind"), named.get("name")


def _gravest(actions: Collection[str]) -> str:
    return next((action for action in ("deny", "warn", "dryrun") if action in actions), "allow")


def _change(record: dict[str, Any], after: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "time": record.get("timestamp", ""),
        "uid": record.get("requestUID", ""),
        "operation": record.get("operation", ""),
        "kind": record.get("resourceKind", ""),
        "namespace": record.get("resourceNamespace", ""),
        "name": record.get("resourceName", ""),
        "before": record.get("verdict", ""),
        "after": after,
        "violations": rows,
    }


def _samples(client: Client) -> list[dict[str, Any]]:
    objects: dict[str, dict[str, Any]] = {}
    for item in client.snapshot.constraints:
        spec = item.document.get("spec") or {}
        for sample in samples(spec.get("match")):
            objects.setdefault(shown_name(sample), sample)
    return list(objects.values())


def _rego(job: Job) -> dict[str, Any]:
    """Evaluates a query over one module with an input."""
    value = _one(job["input"], "input")
    try:
        modules = (
            [parse_module(job["policy"], "policy.rego", "v1")] if job["policy"].strip() else []
        )
        program = compile_modules(modules)
        query = ResultQuery(program, job["query"] or "data", version="v1")
    except RegoErrors as error:
        raise _Unfit(str(error)) from None
    context = EvaluationContext(time.monotonic() + job["seconds"], _STEPS)
    try:
        answers = []
        for solution in query(UNDEFINED if value is None else value, {}, context):
            values = {
                expression.text: to_json(expression.value) for expression in solution.expressions
            }
            bound = {name: to_json(item) for name, item in solution.bindings.items()}
            answers.append({"expressions": values, "bindings": bound})
            if len(answers) >= _SOLUTIONS_MAX:
                break
    except EvaluationError as error:
        raise _Unfit(str(error)) from None
    return {"answers": answers}


def _cel(job: Job) -> dict[str, Any]:
    """Evaluates an expression over an object."""
    obj = _one(job["input"], "object")
    if obj is not None and not isinstance(obj, dict):
        raise _Unfit("object: an object is expected")
    try:
        return {"value": evaluate(job["policy"], obj=obj, seconds=job["seconds"])}
    except CompileError as error:
        raise _Unfit(str(error)) from None
    except CelError as error:
        raise _Unfit(error.text) from None


_ANSWERS: Final = {"policy": _policies, "recorded": _recorded, "rego": _rego, "cel": _cel}


def _prepared(job: Job) -> None:
    """Does nothing: this module imports all code that jobs need."""
    del job


def main() -> None:
    """Answers jobs until the parent process ends."""
    serve(answer, _prepared)


if __name__ == "__main__":
    main()
