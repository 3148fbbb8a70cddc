"""Measures repeated reviews of all objects by the policies of one engine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.cli.clients import new_client
from webhook.cli.run_times import RunTimes
from webhook.cli.terminal import NoResult
from webhook.constraint import constraint, enforcement, template
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.limits import UNLIMITED, Limits
from webhook.policies.extensions import Extensions
from webhook.policy_kinds.known import is_beside_policies
from webhook.review.loops import review
from webhook.review.policy_set import PolicySet, exclusions_of
from webhook.review.subject import Subject, value_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.constraint.client import Client
    from webhook.external_data.exchange import Ask
    from webhook.policies.manifests import Manifest

ENGINES: Final = {"rego": template.REGO, "cel": template.CEL}

_TEMPLATES: Final = (template.GROUP, template.KIND)


class CannotBench(NoResult):
    """Nothing can be measured; the message has the reason."""


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """The options of a measurement; ``stats`` adds each constraint's times.

    ``ask`` answers for providers.
    """

    iterations: int
    warmup: int
    stats: bool
    ask: Ask | None = None


def bench(engine: str, manifests: Sequence[Manifest], options: BenchOptions) -> dict[str, Any]:
    """Measures one engine; returns the result in gator's format; raises :class:`CannotBench`."""
    templates = [item for item in manifests if item.gvk.group_kind == _TEMPLATES]
    constraints = [item for item in manifests if item.gvk.group == constraint.GROUP]
    objects = [item for item in manifests if _is_object(item)]
    for kind, items in (
        ("ConstraintTemplate", templates),
        ("constraint", constraints),
        ("object to review", objects),
    ):
        if not items:
            raise CannotBench(f"there are no measured times: the files have no {kind}")
    setup = _Setup(engine)
    loaded, skipped = setup.load(templates, constraints)
    policies = setup.data(manifests, objects)
    subjects = [Subject(value_of(item.document, {}), enforcement.COMMAND_LINE) for item in objects]
    for _ in range(options.warmup):
        for subject in subjects:
            review(policies, subject, ask=options.ask)
    times = RunTimes(native=engine == "cel")
    taken, violations, began = [], 0, time.perf_counter_ns()
    for number in range(options.iterations):
        observed = options.stats and number == 0  # once: observing takes time
        limits = Limits(observer=times) if observed else UNLIMITED
        for item in objects:
            subject = Subject(value_of(item.document, {}), enforcement.COMMAND_LINE, limits)
            before = time.perf_counter_ns()
            responses = review(policies, subject, ask=options.ask).responses
            taken.append(time.perf_counter_ns() - before)
            violations += len(responses.results)
    total = time.perf_counter_ns() - began
    result = {
        "engine": engine,
        "templateCount": len(templates) - len(skipped),
        "skippedTemplates": skipped,
        "constraintCount": loaded,
        "skippedConstraints": setup.skipped_constraints,
        "referentialDataSupported": engine == "rego",
        "objectCount": len(objects),
        "iterations": options.iterations,
        "concurrency": 1,
        "setupDuration": sum(setup.breakdown.values()),
        "setupBreakdown": setup.breakdown,
        "totalDuration": total,
        "latencies": latencies(taken),
        "violationCount": violations,
        "reviewsPerSecond": len(taken) * 1e9 / total if total else 0.0,
    }
    if options.stats:
        result["statsEntries"] = times.entries(policies.snapshot)
    return result


def _is_object(item: Manifest) -> bool:
    return (
        item.gvk.group_kind != _TEMPLATES
        and item.gvk.group != constraint.GROUP
        and not is_beside_policies(item.gvk)
    )


class _Setup:
    """Fills a client, and measures the nanoseconds of each step."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self.breakdown: dict[str, int] = {}
        self.skipped_constraints: list[str] = []
        self._client: Client = self._timed(
            "clientCreation", lambda: new_client(native_validation=engine == "cel")
        )

    def _timed(self, step: str, work: Callable[[], Any]) -> Any:
        began = time.perf_counter_ns()
        done = work()
        self.breakdown[step] = time.perf_counter_ns() - began
        return done

    def load(
        self, templates: Sequence[Manifest], constraints: Sequence[Manifest]
    ) -> tuple[int, list[str]]:
        """Loads policies.

        Returns the number of constraints, and the templates for other engines.
        """
        of_engine, kinds, skipped = [], set(), []
        for item in templates:
            read = self._read(item)
            if ENGINES[self._engine] in {code.engine for part in read.parts for code in part.code}:
                of_engine.append(item)
                kinds.add(read.kind)
            else:
                skipped.append(read.name)
        if not of_engine:
            raise CannotBench(f"{self._engine}: no template has code for this engine")
        chosen = [item for item in constraints if item.gvk.kind in kinds]
        self.skipped_constraints = [
            item.document["metadata"]["name"] for item in constraints if item not in chosen
        ]
        if not chosen:
            raise CannotBench(f"{self._engine}: no constraint is of a template for this engine")
        self._timed("templateCompilation", lambda: self._add(of_engine, self._client.add_template))
        self._timed("constraintLoading", lambda: self._add(chosen, self._client.add_constraint))
        return len(chosen), skipped

    def data(self, manifests: Sequence[Manifest], objects: Sequence[Manifest]) -> PolicySet:
        """Returns the policy set, with the objects as the cluster's data."""
        self._timed("dataLoading", lambda: self._add(objects, self._client.add_data))
        extensions = Extensions()
        faults = extensions.load(item for item in manifests if is_beside_policies(item.gvk))
        if faults:
            raise CannotBench(str(faults[0]))
        documents = (item.document for item in manifests)
        return extensions.policy_set(self._client.snapshot, exclusions_of(documents))

    def _read(self, item: Manifest) -> template.Template:
        try:
            return template.read_template(item.document)
        except ConstraintFrameworkError as error:
            raise CannotBench(f"{item.file}:{item.line}: {error}") from None

    def _add(self, items: Sequence[Manifest], add: Callable[[dict[str, Any]], bool]) -> None:
        for item in items:
            try:
                add(item.document)
            except ConstraintFrameworkError as error:
                raise CannotBench(f"{item.file}:{item.line}: {error}") from None


def latencies(taken: Sequence[int]) -> dict[str, int]:
    """Returns nanoseconds in gator's fields; percentiles interpolate between the nearest ranks."""
    ordered = sorted(taken)

    def percentile(part: float) -> int:
        rank = part * (len(ordered) - 1)
        lower = int(rank)
        upper = min(lower + 1, len(ordered) - 1)
        return int(ordered[lower] * (1 - rank + lower) + ordered[upper] * (rank - lower))

    return {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": sum(ordered) // len(ordered),
        "p50": percentile(0.5),
        "p95": percentile(0.95),
        "p99": percentile(0.99),
    }
