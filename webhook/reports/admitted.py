"""Results of admissions by constraints that are enforced only at admission.

Results of an audit are recomputed from the resource, by any audit. A constraint scoped to admission
may read the user or the operation, which are unknown afterwards. The results of the last admission
are therefore kept, as long as the resource is in that state.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import encode
from webhook.constraint import enforcement
from webhook.constraint.selection import about
from webhook.reports.finding import SOURCE, Admitted, Finding, Policy, ReportResult, order
from webhook.reports.results import Descriptions, findings_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from webhook.api.gvk import GroupKind
    from webhook.constraint.result import Responses
    from webhook.constraint.snapshot import Snapshot

RESULTS_MAX: Final = 50
"""The number of results of one resource, besides those of the audit; etcd's 1.5 MB have room for
six times as many."""

_OUTSIDE: Final = frozenset({"apiVersion", "kind", "metadata", "status"})

_SET_WITH_A_NODE: Final = "topology.kubernetes.io/"
"""The prefix of labels that a Pod gets when it is bound to its node; no request to the webhook
contains them."""


def admission_only(snapshot: Snapshot, kind: GroupKind) -> frozenset[Policy]:
    """Returns the constraints about a kind that are enforced at admission and not by audits."""
    return frozenset(
        Policy(item.kind, item.name)
        for item in about(snapshot, kind, enforcement.WEBHOOK)
        if not enforcement.applies(item, (enforcement.AUDIT,))
    )


def state_of(obj: Mapping[str, Any]) -> str:
    """Returns the state of a resource: the same text at admission and when read unchanged.

    The state is the generation, or the content without one, and the labels. Changes without an
    admission do not count: of the status, of annotations (which controllers change through the
    status), and of the binding to a node.
    """
    metadata = obj.get("metadata") or {}
    generation = metadata.get("generation")
    contents: Any = generation
    if type(generation) is not int:
        contents = {name: value for name, value in obj.items() if name not in _OUTSIDE}
        spec = contents.get("spec")
        if type(spec) is dict:
            contents["spec"] = {key: spec[key] for key in spec if key != "nodeName"}
    labels = metadata.get("labels")
    if type(labels) is dict:
        labels = {key: labels[key] for key in labels if not key.startswith(_SET_WITH_A_NODE)}
    data = encode([contents, labels or None], sort_keys=True)
    return hashlib.blake2b(data, digest_size=8).hexdigest()


class AdmissionResults:
    """Takes the results for reports from reviews. Used by one thread."""

    def __init__(
        self, stored: frozenset[ReportResult], results_max: int | None = RESULTS_MAX
    ) -> None:
        """``stored`` are the reported verdicts, a limited number of each resource."""
        self._stored = stored
        self._results_max = results_max
        self._descriptions = Descriptions()
        self._snapshot: Snapshot | None = None
        self._only: dict[GroupKind, frozenset[Policy]] = {}

    def only(self, snapshot: Snapshot, kind: GroupKind) -> frozenset[Policy]:
        """Returns :func:`admission_only`, cached for each snapshot and kind."""
        if snapshot is not self._snapshot:
            self._snapshot, self._only = snapshot, {}
        policies = self._only.get(kind)
        if policies is None:
            policies = self._only[kind] = admission_only(snapshot, kind)
        return policies

    def of(
        self, responses: Responses, snapshot: Snapshot, obj: Mapping[str, Any], kind: GroupKind
    ) -> Admitted | None:
        """Returns the findings of an admitted resource; None without such a constraint."""
        only = self.only(snapshot, kind)
        if not only:
            return None
        chosen = responses._replace(
            results=tuple(item for item in responses.results if item.constraint.key in only),
            excused=tuple(item for item in responses.excused if item.constraint.key in only),
            undecided=tuple(item for item in responses.undecided if item.constraint.key in only),
            faults=(),
        )
        state = state_of(obj)
        findings = findings_of(
            chosen, snapshot, self._descriptions, self._stored, results_max=self._results_max
        )
        marked = [replace(item, point=enforcement.WEBHOOK, state=state) for item in findings]
        return Admitted(tuple(marked), state)


def whole(
    audited: Iterable[Finding],
    stored: Iterable[Finding],
    admitted: Admitted | None,
    state: str,
    only: Collection[Policy],
) -> tuple[Finding, ...]:
    """Returns all results of a report, in order.

    ``audited`` are the present results of an audit's review. For constraints in ``only`` the
    results are those of an admission in the present state (``state``): ``admitted`` if it is of
    this state, else the ``stored`` ones.
    """
    if admitted is not None and admitted.state == state:
        findings: Iterable[Finding] = admitted.findings
    else:
        findings = [item for item in stored if item.point and item.state == state]
    kept = [
        item
        for item in findings
        if Policy(item.policy, item.rule) in only or (only and item.policy == f"~{SOURCE}")
    ]
    return tuple(sorted([*audited, *kept], key=order)) if kept else tuple(audited)
