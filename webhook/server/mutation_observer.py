"""Records a mutation beside its answer: counts, the log, fights, the decision log."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any

from webhook.api.gvk import gvk_of, labels_of, name_of, text
from webhook.metrics.admission import UNDECIDABLE
from webhook.metrics.mutation import MUTATORS_SKIPPED
from webhook.metrics.registry import GROUPS_MAX, ObjectGroup, Registry
from webhook.mutation.annotations import id_for
from webhook.server import verdict

if TYPE_CHECKING:
    from webhook.api.admission import AdmissionRequest, AdmissionResponse
    from webhook.log import Logger
    from webhook.mutation.fights import Fights
    from webhook.mutation.mutator import MutationSource
    from webhook.mutation.passes import MutationOnError
    from webhook.mutation.plan import Mutated
    from webhook.mutation.previewing import Preview
    from webhook.serving.recorder import MutationRecorder, MutationReviewed

    AppliedPasses = tuple[tuple[MutationSource, ...], ...]


class MutationObserver:
    """Logs and counts the actions of mutators. For one thread; never waits."""

    def __init__(
        self,
        registry: Registry,
        log: Logger,
        fights: Fights,
        recorder: MutationRecorder | None,
        *,
        logs_mutations: bool,
    ) -> None:
        self._registry = registry
        self._log = log
        self._fights = fights
        self._recorder = recorder
        self._logs_mutations = logs_mutations
        self._groups: dict[int, tuple[AppliedPasses, ObjectGroup]] = {}

    def answered(
        self, reviewed: MutationReviewed, response: AdmissionResponse
    ) -> AdmissionResponse:
        """Logs and counts an answer; adds the decision's id if decisions are recorded."""
        mutated, preview = reviewed.mutated, reviewed.preview
        if mutated is not None:
            self._record(reviewed, mutated)
        if preview is not None:
            self._record_preview(reviewed.request, preview)
        is_recorded = reviewed.patch or preview is not None or (mutated is None or mutated.skipped)
        if self._recorder is None or not is_recorded:
            return response
        return self._recorder.mutated(reviewed, response)

    def skipped(
        self, request: AdmissionRequest, mutator: str, fault: str, answer: MutationOnError
    ) -> None:
        """Records a mutator that could not be applied.

        ``answer`` is the consequence for the request.
        """
        kind, _, rest = mutator.partition(".")
        self._registry.count(MUTATORS_SKIPPED, kind)
        if kind:
            self._registry.mutators.count(kind, rest.partition("/")[2], "skipped")
        self._log.error(
            "a mutator could not be applied",
            hookType="mutation",
            mutator=mutator,
            answer=answer,
            error=fault,
            request_uid=request.uid,
        )

    def unfinished(self, request: AdmissionRequest, response: AdmissionResponse, why: str) -> None:
        """There was no time for the mutators, for a reason that is the object's or its user's."""
        if response.reason == verdict.UNDECIDABLE_REASON:
            self._registry.count(UNDECIDABLE)
        self._log.warning(
            "an object was not mutated",
            hookType="mutation",
            answer="warn" if response.allowed else "reject",
            error=why,
            request_uid=request.uid,
        )

    def _record(self, reviewed: MutationReviewed, mutated: Mutated) -> None:
        request = reviewed.request
        for name, fault in mutated.skipped.items():
            self.skipped(request, name, fault, "skip")
        if not reviewed.patch:
            return
        # Without a patch, the assigned values were there already.
        self._registry.mutators.count_all(self._sources(mutated.passes), "applied")
        if self._logs_mutations:
            self._log_passes(request, mutated)
        if request.operation == "UPDATE":
            self._note_fight(reviewed, mutated)

    def _sources(self, passes: AppliedPasses) -> ObjectGroup:
        """Returns the mutators that changed an object; the same group for passes that are one value."""
        known = self._groups.get(id(passes))
        if known is None or known[0] is not passes:
            group = ObjectGroup({mutator.id for pass_ in passes for mutator in pass_})
            if len(self._groups) >= GROUPS_MAX:
                self._groups.clear()
            known = self._groups[id(passes)] = passes, group
        return known[1]

    def _note_fight(self, reviewed: MutationReviewed, mutated: Mutated) -> None:
        request, now = reviewed.request, time.monotonic()
        place, name = request.namespace, request.name
        shown = f"{request.kind.kind} {f'{place}/' if place else ''}{name}"
        digest = hashlib.sha256(reviewed.patch.base64).digest()
        change = request.kind.group_kind, place, name, digest
        sources = {mutator.id: mutator for pass_ in mutated.passes for mutator in pass_}
        if not self._fights.note(change, shown, sources.values(), now):
            return
        self._log.warning(
            "mutators fight: the same change is made to an object again and again",
            hookType="mutation",
            object=shown,
            mutators=sorted(map(str, sources)),
            patch=[f"{item['op']} {item['path']}" for item in reviewed.patch.operations[:10]],
        )

    def _record_preview(self, request: AdmissionRequest, preview: Preview) -> None:
        for mutator in preview.mutators:
            if preview.patch:
                self._registry.mutators.count(mutator.id.kind, mutator.id.name, "previewed")
        for name, fault in preview.skipped.items():
            kind, _, rest = name.partition(".")
            self._registry.mutators.count(kind, rest.partition("/")[2], "preview_failed")
            self._log.warning(
                "a mutator in preview could not be applied",
                hookType="mutation",
                mutator=name,
                error=fault,
                request_uid=request.uid,
            )

    def _log_passes(self, request: AdmissionRequest, mutated: Mutated) -> None:
        """Logs which mutators changed an object, with Gatekeeper's message and fields."""
        obj = request.object or {}
        group, version, kind = gvk_of(obj)
        fields: dict[str, Any] = {
            f"iteration_{number}": ", ".join(map(str, mutators))
            for number, mutators in enumerate(mutated.passes)
        }
        self._log.info(
            "Mutation applied",
            hookType="mutation",
            semantic=True,
            event_type="mutation_applied",
            resource_group=group,
            resource_kind=kind,
            resource_api_version=version,
            resource_namespace=request.namespace,
            resource_name=name_of(obj) or text(obj, "metadata", "generateName"),
            resource_source_type="Original",
            resource_labels=labels_of(obj),
            **{"Mutation Id": id_for(mutated.passes)},
            **fields,
        )
