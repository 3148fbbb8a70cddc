"""A picture of policies in files, read again when the files change."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.api import timestamp
from webhook.api.admission import InvalidReview
from webhook.api.gvk import gvk_of, name_of, namespace_of
from webhook.console.exception_states import judged as judged_exception
from webhook.console.picture import NotReadable, Picture, ShownPolicy, ShownViolation
from webhook.console.review import EXCUSED, review
from webhook.console.sorts import action_of, category_of, described, shown_name
from webhook.console.violations import gravity
from webhook.constraint import enforcement
from webhook.constraint.limits import Limits
from webhook.constraint.targets import admission
from webhook.file_changes import Watched, watch
from webhook.policies.advice import Matched, advice_on, unsent_kinds
from webhook.policies.field_lines import FilesFieldLines
from webhook.policies.lists import expand_lists
from webhook.policies.manifests import UnreadableFile, find_files, is_object, read_found
from webhook.policies.policy_files import PolicyFiles
from webhook.policies.validation import is_policy
from webhook.policy_kinds.known import foreign_parts
from webhook.review.subject import Subject, is_admission_review, shown_object, value_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from webhook.console.picture import NamedObject, PictureState, Shown
    from webhook.console.visitor import Right
    from webhook.constraint.client import Client
    from webhook.external_data.exchange import Ask
    from webhook.log import Logger
    from webhook.policies.manifests import Manifest, PolicyFault
    from webhook.review.policy_set import PolicySet

INTERVAL_SECONDS: Final = 5.0
"""The time between two checks on systems that do not report file changes."""

VIOLATIONS_MAX: Final = 100_000
_WHY_NONE: Final = "no manifests are given to review: add --manifests"


@dataclass(frozen=True, slots=True)
class Place:
    """The paths of policies, and of the manifests that they review."""

    policies: tuple[Path, ...]
    manifests: tuple[Path, ...]
    ask: Ask | None = None
    """Answers for external data providers, if the user has given some."""

    def __str__(self) -> str:
        return ", ".join(map(str, self.policies))


class FileObjects:
    """The objects of the manifests, as read last."""

    def __init__(self, objects: Sequence[Manifest] = ()) -> None:
        self._objects = objects

    async def right(self, place: NamedObject) -> Right | None:
        """Returns None: reading a file needs no right."""
        del place
        return None

    async def read(self, place: NamedObject) -> dict[str, Any]:
        """Returns the object; raises :class:`NotReadable`."""
        for item in self._objects:
            document = item.document
            named = gvk_of(document), namespace_of(document), name_of(document)
            if named == (place.gvk, place.namespace, place.name):
                return document
        raise NotReadable("none of the manifests contains it")


class FilesSource:
    """Follows files on its own thread; swaps the picture on the event loop."""

    def __init__(self, place: Place, client: Client, shown: Shown, log: Logger) -> None:
        self._place = place
        self._client = client
        self._shown = shown
        self._log = log
        self._files = PolicyFiles(client, place.policies, foreign=foreign_parts())
        self._stop = threading.Event()
        self._policies: PolicySet | None = None
        self.objects = FileObjects()

    def policies(self) -> PolicySet | None:
        """Returns the policies in force; None before they were read. Safe on any thread."""
        return self._policies

    async def refresh_notes(self) -> None:
        """Does nothing: files have no replicas."""

    async def run(self) -> None:
        """Reads the files and follows them until cancelled."""
        loop = asyncio.get_running_loop()

        def reload() -> bool:
            try:
                picture = self.read()
            except Exception as error:  # noqa: BLE001  # a failed reload keeps the former picture
                self._log.fault("bug while reading policies", error)
                return False
            loop.call_soon_threadsafe(self._shown.swap, picture)
            return not picture.trouble

        subject = Watched((*self._place.policies, *self._place.manifests), reload)
        task = asyncio.to_thread(watch, [subject], self._stop, interval_seconds=INTERVAL_SECONDS)
        try:
            await task
        finally:
            self._stop.set()

    def read(self) -> Picture:
        """Returns the picture of the files as they are now; for one thread."""
        policies_now, report = self._files.load()
        self._policies = policies_now
        faults, snapshot = report.faults, policies_now.snapshot
        objects, trouble = _objects(self._place.manifests)
        self.objects = FileObjects(objects)
        judged = _Judged(policies_now, self._place.ask)
        violations, more = judged.violations(objects)
        advice = judged.advice(are_reviewed=bool(self._place.manifests))
        loose = {(kind, name): why for kind, name, why in policies_now.foreign.loose()}
        policies = described(
            judged_exception(
                replace(
                    _policy(
                        item, category, faults, loose, _elsewhere(self._client, item, category)
                    ),
                    advice=advice.get((item.gvk.kind, shown_name(item.document)), ()),
                ),
                policies_now,
                time.time(),
            )
            for item in report.read
            if (category := category_of(item.document)) is not None
        )
        by_key = {item.key: item for item in policies}
        policy_faults = {fault for item in policies for fault in item.faults}
        return Picture(
            over="files",
            place=str(self._place),
            version=f"{snapshot.digest[:16]} (revision {snapshot.revision})",
            taken=timestamp.now(),
            policies=tuple(sorted(policies, key=lambda item: (item.category, *item.key))),
            violations=_graded(violations, by_key) if self._place.manifests else None,
            why_no_violations="" if self._place.manifests else _WHY_NONE,
            reviewed=len(objects) if self._place.manifests else None,
            trouble=(*trouble, *more),
            faults=(
                *(str(fault) for fault in faults if fault.message not in policy_faults),
                *report.repeated,
            ),
            by_key=by_key,
        )


def _graded(
    violations: Iterable[ShownViolation], policies: Mapping[tuple[str, str], ShownPolicy]
) -> tuple[ShownViolation, ...]:
    """Returns the violations with their policies' severities, the gravest first."""
    severities = {f"{kind}/{name}": item.severity for (kind, name), item in policies.items()}
    graded = [
        replace(violation, severity=severities.get(violation.policy, ""))
        for violation in violations
    ]
    return tuple(sorted(graded, key=gravity))


def _elsewhere(client: Client, manifest: Manifest, category: str) -> str:
    """Returns why a policy is not for admission, as replicas write it in a status; or ""."""
    if category == "template":
        return client.elsewhere(name_of(manifest.document))
    if category != "constraint":
        return ""
    why = client.elsewhere(manifest.gvk.kind.lower())
    return why and f"its template {why}"


def _policy(
    manifest: Manifest,
    category: str,
    faults: Sequence[PolicyFault],
    loose: Mapping[tuple[str, str], str],
    elsewhere: str,
) -> ShownPolicy:
    own_faults = [
        fault
        for fault in faults
        if (fault.file, fault.line, fault.title) == (manifest.file, manifest.line, manifest.title)
    ]
    state: PictureState = "not for admission" if elsewhere else "active"
    why = loose.get((manifest.gvk.kind, shown_name(manifest.document)), "")
    if why:
        state = "not asked"
    if own_faults:
        state = "degraded" if all(fault.stays for fault in own_faults) else "error"
    document = manifest.document
    return ShownPolicy(
        category,
        gvk_of(document).kind,
        shown_name(document),
        document,
        state,
        action=action_of(document) if category == "constraint" else "",
        faults=tuple(fault.message for fault in own_faults)
        or tuple(filter(None, (elsewhere, why))),
        place=f"{manifest.file}:{manifest.line}",
    )


def _objects(paths: Iterable[Path]) -> tuple[list[Manifest], list[str]]:
    """Returns the objects to review, and a message for each unreadable file."""
    objects: list[Manifest] = []
    trouble: list[str] = []
    for path in paths:
        try:
            files = find_files(path)
        except OSError as error:
            trouble.append(f"{path}: {error.strerror}")
            continue
        for file in files:
            try:
                manifests = list(expand_lists(read_found(file, path)))
            except UnreadableFile as error:
                trouble.append(str(error))
            else:
                objects += [
                    item
                    for item in manifests
                    if is_object(item.document) and not is_policy(item.document)
                ]
    return objects, trouble


class _Judged:
    """The violations of objects, as ``waddle test`` finds them, and constraints that match none."""

    def __init__(self, policies: PolicySet, ask: Ask | None) -> None:
        self._policies = policies
        self._ask = ask
        self._matched = Matched()
        self._alone = Matched()
        """Constraints that matched plain objects, which are not AdmissionReviews."""
        self._seen: set[tuple[str, str]] = set()
        self._lines = FilesFieldLines()

    def violations(self, objects: Sequence[Manifest]) -> tuple[list[ShownViolation], list[str]]:
        """Returns the violations, and messages on undecided objects."""
        shown: list[ShownViolation] = []
        trouble: list[str] = []
        namespaces = dict(self._policies.snapshot.namespaces)
        for item in objects:
            if item.gvk.group_kind == ("", "Namespace"):
                namespaces[name_of(item.document)] = item.document
        for item in objects:
            rows, faults = self._review(item, namespaces)
            shown += [self._violation(row, item) for row in rows if row["action"] != EXCUSED]
            trouble += [f"{item.file}:{item.line}: {fault}" for fault in faults]
            if len(shown) >= VIOLATIONS_MAX:
                trouble.append(f"more than {VIOLATIONS_MAX} violations: the rest is not shown")
                break
        return shown, trouble[:100]

    def _review(
        self, item: Manifest, namespaces: Mapping[str, Mapping[str, Any]]
    ) -> tuple[list[dict[str, Any]], list[str]]:
        try:
            value = value_of(item.document, namespaces)
        except InvalidReview as error:
            return [], [f"AdmissionReview: {error}"]
        matched = self._matched if is_admission_review(item.document) else self._alone
        self._seen.add(gvk_of(shown_object(item.document)).group_kind)
        limits = Limits(observer=matched)
        subject = Subject(value, point=enforcement.COMMAND_LINE, limits=limits)
        return review(self._policies, subject, ask=self._ask)

    def _violation(self, row: Mapping[str, Any], item: Manifest) -> ShownViolation:
        document = shown_object(item.document)
        file, message = str(item.file), row["message"]
        line = self._lines.line(file, item.line, document, message, row["details"])
        return ShownViolation(
            f"{row['kind']}/{row['name']}",
            row["action"],
            str(document.get("apiVersion", "")),
            gvk_of(document).kind,
            namespace_of(document),
            name_of(document),
            message,
            place=f"{file}:{line}",
        )

    def advice(self, *, are_reviewed: bool) -> dict[tuple[str, str], tuple[str, ...]]:
        """Returns advice on usable policies that probably lack effect, by kind and name."""
        snapshot = self._policies.snapshot
        messages: dict[tuple[str, str], list[str]] = {}
        if are_reviewed:
            for constraint in self._alone.missing(snapshot, admission.NAME):
                if constraint.key not in self._matched:
                    messages.setdefault(constraint.key, []).append(
                        "it matches no object of the manifests"
                    )
        for problem in (*advice_on(snapshot, self._seen), *unsent_kinds(snapshot, self._alone)):
            messages.setdefault((problem.kind, problem.name), []).append(problem.message)
        foreign = self._policies.foreign
        loose = set(foreign.loose())
        for kind, name, text in foreign.warnings(snapshot.inventory):
            if (kind, name, text) not in loose:  # reported as faults already
                messages.setdefault((kind, name), []).append(text)
        return {key: tuple(texts) for key, texts in messages.items()}
