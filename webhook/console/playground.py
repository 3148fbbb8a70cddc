"""Tries user input: policies in force review it here, new policies run in another process.

Policies in force have been tried before, so they review in this process, within a deadline. User
input is compiled and evaluated in a process that the system ends beyond its limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import signal
from typing import TYPE_CHECKING, Any, Final

from webhook.admission_policies.parameters import UnknownParameters
from webhook.api import timestamp
from webhook.api.admission import InvalidReview
from webhook.api.documents import InvalidDocument, read_documents
from webhook.api.encoding import decode, encode
from webhook.api.gvk import gvk_of, name_of, namespace_of, plural_of
from webhook.api.shapes import object_of
from webhook.console.review import review
from webhook.console.visitor import Right
from webhook.constraint import enforcement
from webhook.constraint.errors import ReviewError
from webhook.constraint.placement import namespace_for
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.policies.recorded_answers import InvalidAnswers, is_answers, typed_answers
from webhook.policy_kinds.known import is_foreign_policy
from webhook.review.admission_policies import AdmissionPolicies
from webhook.review.admission_requests import all_known
from webhook.review.subject import Subject, shown_object, value_of
from webhook.trials.job import LATE, NO_MEMORY, NO_PROCESS, NoWorker
from webhook.trials.process import Worker
from webhook.trials.trials import MEMORY_BYTES, PATIENCE_SECONDS
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.console.decisions import Recorded
    from webhook.console.picture import Picture
    from webhook.external_data.exchange import Ask
    from webhook.review.policy_set import PolicySet

MODES: Final = ("review", "policy", "recorded", "rego", "cel")
TEXT_CHARACTERS_MAX: Final = 256 * 1024
"""The longest input of one field. PyYAML reads some 100 KB a second."""

CPU_SECONDS: Final = 10
_SECONDS: Final = 2.0
"""The time limit of one evaluation, short because a person waits for it."""

_OBJECTS_MAX: Final = 50
_WAITING_MAX: Final = 4
_RECORDS_BYTES_MAX: Final = 4 << 20
"""The recorded decisions of one attempt; Python's values take some eight times as much memory."""
_DATA_BYTES_MAX: Final = 4 << 20
"""The parameters of one attempt."""
_FOREIGN_GROUPS: Final = ("admissionregistration.k8s.io", "policies.kyverno.io")
_TOO_MUCH_MEMORY: Final = f"it was ended: it takes more than {MEMORY_BYTES >> 20} MiB of memory"
_PROGRAM: Final = "webhook.console.playground_worker"


_NOT_TRIED: Final = (
    "this choice reviews by the policies in force alone, but a policy was typed. Choose "
    "to try new templates and constraints, or empty the field"
)


class Busy(Exception):
    """Too many attempts wait already: try again later."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A user's input; ``policy`` has templates, Rego or CEL, depending on ``mode``."""

    mode: str = "review"
    policy: str = ""
    input: str = ""
    query: str = ""

    @classmethod
    def of(cls, form: Mapping[str, str]) -> Attempt:
        """Reads a form; normalizes line ends."""
        fields = {name: form.get(name, "").replace("\r\n", "\n") for name in cls.__slots__}
        return cls(**{**fields, "mode": fields["mode"] if fields["mode"] in MODES else "review"})

    @property
    def too_long(self) -> bool:
        """Whether any field is longer than ``TEXT_CHARACTERS_MAX``."""
        fields = (self.policy, self.input, self.query)
        return any(len(text) > TEXT_CHARACTERS_MAX for text in fields)


class Playground:
    """Runs one attempt at a time; a few may wait. ``seconds`` limits one evaluation."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._worker = Worker(0, _PROGRAM)

    async def attempt(
        self,
        given: Attempt,
        policies: Callable[[], PolicySet | None],
        picture: Picture,
        recorded: Recorded | None = None,
        may: Callable[[Right], bool] | None = None,
    ) -> dict[str, Any]:
        """Returns the results, or an ``error``; raises :class:`Busy`.

        ``policies`` returns the policies in force, and may compile them, so it is called on a
        thread. So is ``may``, which checks whether the visitor may list a kind; without it
        everything is readable.
        """
        if given.too_long:
            return {"error": f"longer than {TEXT_CHARACTERS_MAX} characters"}
        with self._place():
            async with self._lock:
                if given.mode == "review":
                    if given.policy.strip():
                        return {"error": _NOT_TRIED}
                    return await asyncio.to_thread(lambda: reviewed(given.input, policies()))
                return await asyncio.to_thread(self._ask, given, policies, picture, recorded, may)

    async def live(
        self, document: dict[str, Any], in_force: Callable[[], PolicySet | None]
    ) -> dict[str, Any]:
        """Reviews a stored object by the policies in force, as an audit does; may raise Busy."""

        def look() -> dict[str, Any]:
            policies = in_force()
            if policies is None:
                return {"error": "no policy has been read yet"}
            place = namespace_for(document, policies.snapshot.namespaces)
            # A stored object has been mutated at its admission.
            subject = Subject(
                AugmentedObject(document, place),
                point=enforcement.AUDIT,
                process="audit",
                mutates=False,
            )
            rows, faults = review(policies, subject)
            shown = {"object": "", "error": "", "violations": rows, "notDecided": faults}
            metadata = object_of(document.get("metadata"))
            return {
                "reviews": [shown],
                "constraints": len(policies.snapshot.constraints),
                "resourceVersion": str(metadata.get("resourceVersion", "")),
                "at": timestamp.now(),
            }

        with self._place():
            async with self._lock:
                return await asyncio.to_thread(look)

    def stop(self) -> None:
        """Ends the process."""
        self._worker.stop()

    @contextlib.contextmanager
    def _place(self) -> Any:
        if self._waiting >= _WAITING_MAX:
            raise Busy
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def _ask(
        self,
        attempt: Attempt,
        policies: Callable[[], PolicySet | None],
        picture: Picture,
        recorded: Recorded | None,
        may: Callable[[Right], bool] | None,
    ) -> dict[str, Any]:
        job: dict[str, Any] = {
            "mode": attempt.mode,
            "policy": attempt.policy,
            "input": attempt.input,
            "query": attempt.query,
            "seconds": self._seconds,
            "cpuSeconds": CPU_SECONDS,
            "memoryBytes": MEMORY_BYTES,
            "patienceSeconds": PATIENCE_SECONDS,
        }
        if recorded is not None:
            job["records"] = _within(recorded)
        if attempt.mode in {"policy", "recorded"}:
            in_force = policies() if _reads_data(attempt, picture) else None
            known, unknown = _data(in_force, may, has_all=picture.over == "files")
            job |= {"known": encode(known), "unknown": unknown}
            text = attempt.policy.lower()
            job["inForce"] = encode(
                [
                    item.document
                    for item in picture.policies
                    if item.category == "template" and item.name in text
                ]
            )
            job["extensions"] = encode(
                [
                    item.document
                    for item in picture.policies
                    if item.category not in {"template", "constraint"}
                ]
            )
        try:
            ended, written, _ = self._worker.ask(job)
        except NoWorker as error:
            return {"error": f"nothing could be tried: {error}"}
        if ended == 0:
            outcome = marshal.loads(written)  # noqa: S302  # written by our own process
            if outcome == NO_MEMORY:
                return {"error": _TOO_MUCH_MEMORY}
            answer: dict[str, Any] = decode(outcome["found"]) if "found" in outcome else outcome
            if recorded is not None and "replayed" in answer:
                answer["withoutObject"] = recorded.without_object
                answer["complete"] = recorded.complete
            return answer
        return {"error": _ended(ended)}


def _reads_data(attempt: Attempt, picture: Picture) -> bool:
    """Whether foreign policies are typed or in force: only these read data in force."""
    return any(group in attempt.policy for group in _FOREIGN_GROUPS) or any(
        is_foreign_policy(gvk_of(item.document)) for item in picture.policies
    )


def _data(
    policies: PolicySet | None, may: Callable[[Right], bool] | None, *, has_all: bool
) -> tuple[list[Mapping[str, Any]], list[list[str]]]:
    """Returns readable parameters of the policies in force, or all data of files.

    Also returns the kinds of unknown parameters, each as group, version, kind and reason.
    """
    known: list[Mapping[str, Any]] = []
    unknown: list[list[str]] = []
    size = 0
    if policies is None:
        return known, unknown
    inventory = policies.snapshot.inventory
    if has_all:
        known += all_known(inventory)
        if len(encode(known)) <= _DATA_BYTES_MAX:
            return known, unknown
        known = []
    stages = [item for item in policies.foreign.stages if isinstance(item, AdmissionPolicies)]
    for stage in stages:
        for kind in stage.kinds_of_parameters:
            try:
                if may is not None and not may(Right(kind.group, plural_of(kind.kind))):
                    raise UnknownParameters("you have no right to list them")  # noqa: TRY301  # one handler
                objects = stage.known_parameters(kind, inventory)
                size += len(encode(list(objects)))
                if size > _DATA_BYTES_MAX:
                    raise UnknownParameters("there are too many for the playground")  # noqa: TRY301
            except UnknownParameters as error:
                unknown.append([*kind, str(error)])
            else:
                known += objects
    return known, unknown


def _within(recorded: Recorded) -> bytes:
    """Returns the newest records that fit into one attempt."""
    kept: list[Mapping[str, Any]] = []
    size = 0
    for record in recorded.records:
        size += len(encode(record))
        if size > _RECORDS_BYTES_MAX:
            break
        kept.append(record)
    return encode(kept)


def _ended(how: int | str) -> str:
    if how == -signal.SIGXCPU:
        return f"it was ended: it takes more than {CPU_SECONDS} s of processor time"
    if how == LATE:
        return f"it was ended after {PATIENCE_SECONDS:.0f} s"
    if how == NO_PROCESS:
        return "nothing could be tried: no process can be started"
    if how == -signal.SIGKILL:
        return "it was ended, as for want of memory"
    if how == 1:
        return "it could not be tried, because of a bug in Waddle"
    return _TOO_MUCH_MEMORY


def reviewed(text: str, policies: PolicySet | None) -> dict[str, Any]:
    """Reviews the objects and AdmissionReviews of a text, as at admission."""
    if policies is None:
        return {"error": "no policy has been read yet"}
    try:
        documents = [item.value for item in read_documents(text)]
    except InvalidDocument as error:
        return {"error": str(error)}
    if not documents:
        return {
            "error": "there is nothing to review: an object as YAML or JSON, or an AdmissionReview"
        }
    try:
        ask = typed_answers(documents)
    except InvalidAnswers as error:
        return {"error": str(error)}
    documents = [item for item in documents if not is_answers(item)]
    return {
        "reviews": [_reviewed(item, policies, ask) for item in documents[:_OBJECTS_MAX]],
        "notReviewed": max(0, len(documents) - _OBJECTS_MAX),
        "constraints": len(policies.snapshot.constraints),
    }


def _reviewed(document: Any, policies: PolicySet, ask: Ask) -> dict[str, Any]:
    try:
        value = _value(document, policies)
        rows, faults = review(policies, Subject(value, point=enforcement.WEBHOOK), ask=ask)
    except (InvalidReview, ReviewError) as error:
        return {"object": "", "error": str(error), "violations": [], "notDecided": []}
    obj = shown_object(document)
    place = namespace_of(obj)
    name = f"{place}/{name_of(obj)}" if place else name_of(obj)
    denied = any("deny" in row["action"].split(",") for row in rows)
    return {
        "object": f"{gvk_of(obj).kind} {name}",
        "error": "",
        "allowed": not denied if not faults or denied else None,
        "violations": rows,
        "notDecided": faults,
    }


def _value(document: Any, policies: PolicySet) -> AugmentedObject | AugmentedReview:
    """Returns the value to review; raises InvalidReview."""
    if not isinstance(document, dict):
        raise InvalidReview("an object is expected")
    if not gvk_of(document).kind or not isinstance(document.get("apiVersion"), str):
        raise InvalidReview("an object with apiVersion and kind is expected")
    # An object is reviewed as one about to be created.
    return value_of(document, policies.snapshot.namespaces, operation="CREATE")
