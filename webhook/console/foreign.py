"""Rows of foreign policies: the API server's admission policies, and Kyverno's.

The compiled policies are kept: a picture is made at each change, and compiling their expressions
takes longer than the rest of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api.gvk import gvk_of, text
from webhook.api.shapes import integer_of, object_of
from webhook.audit.admission_policies import is_generated
from webhook.console.picture import PictureState, ShownPolicy
from webhook.console.sorts import category_of, shown_name
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.kyverno.kinds import AUDITED
from webhook.policy_kinds import parts
from webhook.policy_kinds.known import is_admission_policy
from webhook.review.admission_policies import ACTIONS, AdmissionPolicies
from webhook.review.kyverno_policies import KyvernoPolicies
from webhook.webhook_rules.coverage import REASON

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.policies.request_coverage import RequestCoverage


class ForeignRows:
    """Makes rows of foreign policies. Used by one task."""

    def __init__(self, kyverno: str = "off") -> None:
        """``kyverno`` is the replicas' mode for Kyverno policies.

        ``off``, ``audit`` or ``enforce``.
        """
        self.kyverno = kyverno
        self._documents: list[Mapping[str, Any]] = []
        self._faults: dict[int, str] = {}
        self._own = AdmissionPolicies(())
        self._kyvernos = KyvernoPolicies(())
        self._notes: dict[tuple[str, str], list[str]] = {}

    def shown(
        self, documents: Sequence[Mapping[str, Any]], coverage: RequestCoverage
    ) -> list[ShownPolicy]:
        """Returns the rows; leaves out generated policies, whose constraints have rows already."""
        kept = [document for document in documents if not is_generated(document)]
        if len(kept) != len(self._documents) or any(
            document is not known for document, known in zip(kept, self._documents, strict=True)
        ):
            self._read(kept)
        loose = {(kind, name): why for kind, name, why in self._own.loose()}
        loose |= {(kind, name): why for kind, name, why in self._kyvernos.loose()}
        actions = {(policy.kind, policy.name): policy.bindings for policy in self._own.listed()}
        return [self._row(document, loose, actions, coverage) for document in kept]

    def _read(self, documents: list[Mapping[str, Any]]) -> None:
        self._documents, self._faults = documents, {}
        own_policies, kyvernos = [], []
        for document in documents:
            try:
                if is_admission_policy(gvk_of(document)):
                    own_policies.append(parts.read_admission_policy(document))
                else:
                    kyvernos.append(parts.read_kyverno_policy(document))
            except ConstraintFrameworkError as error:
                self._faults[id(document)] = str(error)
        self._own, self._kyvernos = AdmissionPolicies(own_policies), KyvernoPolicies(kyvernos)
        self._notes = {}
        for kind, name, note in (*self._own.notes(), *self._kyvernos.notes()):
            self._notes.setdefault((kind, name), []).append(note)

    def _row(
        self,
        document: Mapping[str, Any],
        loose: Mapping[tuple[str, str], str],
        actions: Mapping[tuple[str, str], Sequence[tuple[str, Sequence[str]]]],
        coverage: RequestCoverage,
    ) -> ShownPolicy:
        kind, name = gvk_of(document).kind, shown_name(document)
        metadata = object_of(document.get("metadata"))
        is_own = is_admission_policy(gvk_of(document))
        why, advice = self._faults.get(id(document), ""), self._notes.get((kind, name), [])
        state: PictureState = "error" if why else "active"
        if not why and (kind, name) in loose:
            state, why = "not asked", loose[kind, name]
        elif not why and not is_own:
            state, why, more = self._standing(document, coverage)
            advice = [*more, *advice]
        category = category_of(document)
        assert category is not None
        bound = actions.get((kind, name), ())
        return ShownPolicy(
            category,
            kind,
            name,
            document,
            state,
            action=",".join(dict.fromkeys(ACTIONS[action] for _, of in bound for action in of)),
            generation=integer_of(metadata.get("generation")),
            resource_version=text(metadata, "resourceVersion"),
            faults=(why,) if why else (),
            advice=tuple(advice),
        )

    def _standing(
        self, document: Mapping[str, Any], coverage: RequestCoverage
    ) -> tuple[PictureState, str, list[str]]:
        """Returns the state, the fault and the notes of a usable Kyverno policy."""
        if self.kyverno == "audit":
            return "not for admission", "", [AUDITED]
        asking = coverage(document)
        if asking is None:
            return "active", "", []
        if asking.extent == "not at all":
            return "not asked", f"{REASON}: {asking.text}", []
        return "active", "", list(asking.notes)
