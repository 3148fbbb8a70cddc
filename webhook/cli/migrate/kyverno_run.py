"""Runs ``waddle migrate kyverno``: reads policies and reports which run here."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.gvk import name_of
from webhook.api.shapes import object_of, objects_of
from webhook.cli import exit_codes
from webhook.cli.formats.document import as_stream
from webhook.cli.migrate.rules import Judged, Note
from webhook.cli.migrate.run import NOT_WRITTEN, as_json, as_table, from_files
from webhook.cli.terminal import complain, write
from webhook.exceptions.globs import globs_overlap
from webhook.kyverno.conversion import converted
from webhook.kyverno.exception_conversion import converted_exceptions, is_old_exception
from webhook.kyverno.image_conversion import CONSTRAINT, converted_policy, converted_rules
from webhook.kyverno.kinds import (
    CLUSTER_POLICY,
    EXCEPTION,
    GROUP,
    IMAGE_POLICY,
    NAMESPACED_IMAGE_POLICY,
    OLD_POLICY,
    TEST_FILES,
    is_evaluated,
    is_kyverno,
    why_not_run,
)
from webhook.kyverno.patterns import Unwritable
from webhook.kyverno.validating_policy import fault_of
from webhook.policies.kyverno_suite import read_suites
from webhook.policies.manifests import find_files
from webhook.policies.suite import InvalidSuite
from webhook.policies.suite_filter import Filter
from webhook.printable import one_line, quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.api.shapes import Json
    from webhook.kyverno.image_conversion import ConvertedImages
    from webhook.policies.manifests import Manifest

_HOW: Final = (
    '"as it is": every command reviews by the policy, and so does a cluster with '
    '--kyverno-policies. "differs": it becomes a ValidatingPolicy, which --converted '
    "writes. The tests run against the converted policies, as with waddle verify."
)

_HOW_IMAGES: Final = (
    "waddle provider images reads VerificationPolicies; the constraint needs the "
    "template policies/supply-chain/signed-images (docs/kyverno.md, Signed images)."
)

_BESIDE: Final = ("", ".kyverno-test")
"""The folders of tests, relative to the folder of a policy."""

_RULES: Final = {
    "validate": "write a ValidatingPolicy, or a template in Rego or CEL",
    "mutate": "write mutators: Assign, ModifySet, AssignMetadata or AssignImage",
    "generate": "no equivalent: Waddle creates no objects",
}
"""Advice on the replacement of a rule, by the field of the rule's kind."""


def run(filenames: Sequence[str], output: str, target: Path | None) -> int:
    """Judges every policy of the files, and writes converted rules; returns the exit code."""
    manifests, all_read = from_files(filenames)
    converted: list[Json] = []
    policies = [item.document for item in manifests if is_kyverno(item.document)]
    judged = [_judged(item, converted, policies) for item in manifests if is_kyverno(item.document)]
    if not judged:
        complain("the files have no policy of Kyverno")
        return exit_codes.UNKNOWN
    _report_overlaps(converted)
    tests = _tests(filenames, judged)
    how = (
        f"{_HOW}\n{_HOW_IMAGES}"
        if any(document["kind"] == CONSTRAINT for document in converted)
        else _HOW
    )
    if output == "json":
        write(as_json([*judged, *tests.rows]))
    else:
        write("\n".join((as_table(judged), how, *tests.lines)))
    if target is not None and not all_read:
        complain(NOT_WRITTEN)
    elif target is not None:
        try:
            target.write_text(f"{as_stream(converted, _missing(judged))}\n", encoding="utf-8")
        except OSError as error:
            complain(f"{target}: {error.strerror}")
            return exit_codes.UNKNOWN
    if not (all_read and tests.all_read):
        return exit_codes.UNKNOWN
    is_missing = any(row.grade == "missing" for row in judged)
    return exit_codes.NO if is_missing or tests.different else exit_codes.OK


def _missing(judged: Sequence[Judged]) -> list[str]:
    """Returns a line for each part of a policy that is not converted."""
    return [
        f"{row.kind}/{row.name}: {note.text}"
        for row in judged
        for note in row.notes
        if note.grade == "missing"
    ]


class _Tests(NamedTuple):
    """Results of Kyverno's own tests of the policies."""

    rows: list[Judged]
    """One for each test: a note has the difference."""
    equal: int
    different: int
    all_read: bool

    @property
    def lines(self) -> list[str]:
        """Returns lines about the results; none without tests."""
        if not self.rows:
            return []
        cases = self.equal + self.different
        counted = f"{self.equal} of {quantity(cases, 'case')} equal"
        named = [f"  {_placed(row, note)}" for row in self.rows for note in row.notes]
        return ["", f"Their tests (kyverno-test.yaml): {counted}", *named]


def _placed(row: Judged, note: Note) -> str:
    """Returns a note behind its place, which errors of reading name more exactly themselves."""
    file = row.place.rpartition(":")[0]
    text = one_line(note.text)
    return text if text.startswith(f"{file}:") else f"{row.place}: {text}"


def _tests(filenames: Sequence[str], judged: Sequence[Judged]) -> _Tests:
    """Runs the tests below the given folders, and beside each policy."""
    rows, equal, different, all_read = [], 0, 0, True
    for file in _test_files(filenames, judged):
        try:
            suites = list(read_suites(file))
        except (InvalidSuite, OSError) as error:
            complain(str(error))
            all_read = False
            continue
        for suite in suites:
            (test,) = suite.run(str(file), Filter("")).tests
            wrong = [f"{case.name}: {case.error}" for case in test.cases if case.error]
            wrong += [test.error] if test.error else []
            equal += sum(not (case.error or case.skipped) for case in test.cases)
            different += len(wrong)
            notes = tuple(Note("differs", text) for text in wrong)
            rows.append(Judged("Test", suite.name, f"{file}:{suite.line}", notes))
    return _Tests(rows, equal, different, all_read)


def _test_files(filenames: Sequence[str], judged: Sequence[Judged]) -> list[Path]:
    folders = {Path(row.place).parent for row in judged}
    named = [
        folder / below / name for folder in folders for below in _BESIDE for name in TEST_FILES
    ]
    for given in map(Path, filenames):
        if given.is_dir():
            named += [file for file in find_files(given) if file.name in TEST_FILES]
    by_place = {file.resolve(): file for file in sorted(named) if file.is_file()}
    return sorted(by_place.values())


def _judged(item: Manifest, converted: list[Json], policies: Sequence[Json]) -> Judged:
    """Returns the verdict on a policy; converted rules are added to ``converted``."""
    notes = tuple(_notes(item.document, converted, policies))
    return Judged(item.gvk.kind, name_of(item.document), f"{item.file}:{item.line}", notes)


def _notes(
    document: Json, converted_documents: list[Json], policies: Sequence[Json]
) -> Iterator[Note]:
    """Returns the differences of one of the policies, and its unsupported parts."""
    kind = document.get("kind")
    if is_evaluated(document):
        if fault := fault_of(document):
            yield Note("missing", fault)
    elif kind in {IMAGE_POLICY, NAMESPACED_IMAGE_POLICY}:
        try:
            yield from _images_notes(converted_policy(document), converted_documents)
        except Unwritable as why:
            yield Note("missing", str(why))
    elif kind in {CLUSTER_POLICY, OLD_POLICY} and (rules := _rules(document)):
        images = dict(converted_rules(document))
        others = dict(converted(document))
        for name, rule in rules.items():
            if name not in images:
                yield _note(name, rule, others[name], converted_documents)
            elif isinstance(of_images := images[name], Unwritable):
                yield Note("missing", f"rule {name}: {of_images}")
            else:
                yield from _images_notes(of_images, converted_documents, f"rule {name}: ")
    elif is_old_exception(document):
        yield from _exception_notes(document, converted_documents, policies)
    else:
        yield Note("missing", why_not_run(document))


def _exception_notes(
    document: Json, converted_documents: list[Json], policies: Sequence[Json]
) -> Iterator[Note]:
    further: list[str] = []
    try:
        becomes = converted_exceptions(document, policies, further)
    except Unwritable as why:
        yield Note("missing", str(why))
        return
    faults = [Note("missing", fault) for each in becomes if (fault := fault_of(each))]
    if not faults:
        converted_documents += becomes
        names = ", ".join(f"{EXCEPTION}.{GROUP} {name_of(each)}" for each in becomes)
        yield Note("differs", f"becomes {names}")
    yield from faults
    yield from (Note("differs", text) for text in further)


def _rules(document: Json) -> dict[str, Json]:
    rules = objects_of(object_of(document.get("spec")).get("rules"))
    return {str(rule.get("name") or f"[{at}]"): rule for at, rule in enumerate(rules)}


def _images_notes(
    images: ConvertedImages, converted: list[Json], prefix: str = ""
) -> Iterator[Note]:
    there = {(document["kind"], name_of(document)) for document in converted}
    if twice := [
        document for document in images.documents if (document["kind"], name_of(document)) in there
    ]:
        is_there = f"{twice[0]['kind']} {name_of(twice[0])} is already the name of another policy"
        yield Note("missing", f"{prefix}{is_there}: rename one of the two")
        return
    converted += images.documents
    names = ", ".join(f"{document['kind']} {name_of(document)}" for document in images.documents)
    yield Note("differs", f"{prefix}becomes {names}")
    for text in images.notes:
        yield Note("differs", f"{prefix}{text}")


def _report_overlaps(converted: Sequence[Json]) -> None:
    """An image has to satisfy every policy about it, whichever constraint asks."""
    specs = [
        object_of(document["spec"]) for document in converted if document["kind"] == CONSTRAINT
    ]
    names = [name_of(document) for document in converted if document["kind"] == CONSTRAINT]
    for (name, spec), (other, its) in combinations(zip(names, specs, strict=True), 2):
        if (spec["match"], spec["enforcementAction"]) == (its["match"], its["enforcementAction"]):
            continue
        pairs = product(spec["parameters"]["images"], its["parameters"]["images"])
        if any(globs_overlap(*pair) for pair in pairs):
            complain(
                f"{CONSTRAINT} {name} and {other} may match the same image, which must then satisfy "
                "both"
            )


def _note(name: str, rule: Json, policy: Any, converted: list[Json]) -> Note:
    field = next((form for form in _RULES if rule.get(form)), "")
    if isinstance(policy, Unwritable):
        why = "" if field != "validate" else f" ({policy})"
        instead = _RULES.get(field, "no equivalent")
        return Note("missing", f"rule {name}: {field or 'nothing'}: {instead}{why}")
    if fault := fault_of(policy):
        return Note("missing", f"rule {name}: {field}: {_RULES[field]} ({fault})")
    converted.append(policy)
    becomes = f"rule {name}: becomes {policy['kind']} {name_of(policy)}"
    rules = objects_of(policy["spec"]["matchConstraints"]["resourceRules"])
    guessed = [
        resource for rule in rules if "*" in rule["apiGroups"] for resource in rule["resources"]
    ]
    if names := ", ".join(resource for resource in dict.fromkeys(guessed) if resource != "*"):
        becomes += f", about {names} of any API group: check that this is the kind you mean"
    return Note("differs", becomes)
